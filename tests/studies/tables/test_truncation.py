"""Truncated matrices: errors against dense algebra, files, and that more vectors lose less."""

import numpy as np
import scipy.sparse as sp

from fedlap_app.studies.tables.experiments import RANKS
from fedlap_app.studies.tables.truncation import bench_truncation, lost, normalised


def test_what_is_lost_is_the_error_of_the_projected_matrix():
    A = (np.random.default_rng(0).random((30, 30)) < 0.2).astype(float)
    A = np.triu(A, 1) + np.triu(A, 1).T
    S = normalised(sp.csr_array(A))
    values, vectors = np.linalg.eigh(S.toarray())
    top = vectors[:, -5:]
    error = np.linalg.norm(S.toarray() - (top * values[-5:]) @ top.T) / np.linalg.norm(S.toarray())
    np.testing.assert_allclose(lost(S, top), error)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((30, 4)))[0]
    kept = Q @ (Q.T @ S.toarray() @ Q) @ Q.T
    error = np.linalg.norm(S.toarray() - kept) / np.linalg.norm(S.toarray())
    np.testing.assert_allclose(lost(S, Q), error)


def test_more_vectors_lose_less_and_eigenvectors_least(tmp_path):
    rows = bench_truncation(["banks"], out=tmp_path, seed=0, say=print)["rows"]
    assert [row["r"] for row in rows] == list(RANKS)
    for key in ("eigenvectors", "krylov"):
        assert (np.diff([row[key] for row in rows]) < 0).all()
    assert all(row["eigenvectors"] <= row["krylov"] + 1e-9 for row in rows)
    for suffix in ("csv", "png", "svg"):
        assert (tmp_path / f"truncation.{suffix}").stat().st_size > 100
