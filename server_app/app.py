"""The ServerApp that Flower loads."""

from fedlap_app.flower.server.app import app

__all__ = ["app"]
