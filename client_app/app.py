"""The ClientApp that Flower loads."""

from fedlap_app.flower.client.app import app

__all__ = ["app"]
