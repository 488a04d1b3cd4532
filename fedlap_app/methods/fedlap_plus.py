"""FedLap+: a feature model on local edges plus a structure model on the global spectral basis.

Every organisation holds its own rows of the basis and the eigenvalues; what is averaged is
(theta_f, theta_s, W). The regulariser is evaluated at the clients, so no eigenvalue leaves them.
"""

import math

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedlap_app.methods.fedlap_rows import row_model
from fedlap_app.models.fusion import build_fused, smooth_cross_entropy
from fedlap_app.models.networks import build_model
from fedlap_app.models.rows import smooth_rows
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import Objective, cross_entropy
from fedlap_app.settings import FEDLAP, Settings
from fedlap_app.sums.job.bases import FinishedBasis

NAME = "fedlap+"

Floats = NDArray[np.float64]


def method_model(
    settings: Settings, num_features: int, num_classes: int, *, held: int = 0
) -> nn.Module:
    """The model that the settings' method trains, the same for the same seed.

    `held` is the number of rows that its owner learns (method fedlap; default: none).
    """
    if settings.method == FEDLAP:
        return row_model(settings, num_features, num_classes, held)
    features = settings.model_spec(num_features, num_classes)
    if settings.method != NAME:
        return build_model(features, settings.seed)
    structure = settings.structure_spec(num_classes)
    used = None if settings.model == "none" else features
    return build_fused(used, structure, settings.seed, weighted=settings.weighted)


def method_objective(settings: Settings) -> Objective:
    """What the settings' method minimises."""
    if settings.method == FEDLAP:
        return smooth_rows(settings.row_smoothing, settings.branch_loss)
    if settings.method != NAME:
        return cross_entropy
    return smooth_cross_entropy(settings.smoothing, settings.branch_loss)


def attach(tensors: GraphTensors, basis: FinishedBasis, settings: Settings) -> GraphTensors:
    """Tensors with the rows of a basis.

    Rows of an orthonormal basis shrink with the number of nodes n, so they are multiplied by
    sqrt(n). A basis of an invariant subspace may have fewer columns than were asked for: the
    rest is zero, so that W has one shape everywhere.
    """
    found = min(basis.U.shape[1], settings.kept)
    rows = np.zeros((basis.U.shape[0], settings.kept))
    values = np.array(basis.eigenvalues[:found])
    scale = math.sqrt(basis.facts.nodes) * _column_weights(settings, values)
    rows[:, :found] = basis.U[:, :found] * scale
    return tensors.with_basis(rows, values)


def _column_weights(settings: Settings, eigenvalues: Floats) -> Floats:
    """How much each column of the basis counts, at most 1."""
    weights = np.ones_like(eigenvalues)
    sizes = np.abs(eigenvalues) / (np.abs(eigenvalues).max(initial=0.0) or 1.0)
    if settings.column_weights == "eigenvalue":
        weights = sizes
    if settings.column_weights == "root":
        # Of A A' the roots are the singular values of A.
        weights = np.sqrt(sizes)
    if settings.column_weights == "diffusion" and len(eigenvalues):
        # The heat kernel exp(-t L): far from the smooth end a column counts less and less.
        weights = np.exp(-settings.diffusion * (eigenvalues - eigenvalues.min()))
    return weights
