"""Matrices of the whole graph, split into what a client computes alone and what it owes others."""

from fedlap_app.spectral.operators.base import LocalOperator
from fedlap_app.spectral.operators.kinds import KINDS, UNNORMALISED, make_operator

__all__ = ["KINDS", "UNNORMALISED", "LocalOperator", "make_operator"]
