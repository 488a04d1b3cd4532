"""Federated node classification over a graph that several organisations hold in parts."""

__version__ = "0.1.0"
