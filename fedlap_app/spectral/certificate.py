"""What the clients know about the quality and the price of a finished basis."""

import json
import math
from dataclasses import dataclass, fields

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.spectral.ritz import SmallProblem, SmallSolution


@dataclass(frozen=True)
class Certificate:
    """Quality and price of a finished basis, for the clients only.

    Attributes
    ----------
    orthogonality
        2-norm of I - U'U.
    residual_max
        Largest norm of L u - theta u over the kept pairs.
    vectors, rank
        Vectors exchanged and kept.
    round_trips
        Messages to each client, each with its reply.
    bytes_up, bytes_down
        Bytes that this client sent and received.
    seconds
        Time from the first message to the finished basis.
    """

    orthogonality: float
    residual_max: float
    vectors: int
    rank: int
    round_trips: int
    bytes_up: int
    bytes_down: int
    seconds: float

    def to_json(self) -> str:
        """As one JSON object."""
        return json.dumps(self.__dict__)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            return cls(**{field.name: values[field.name] for field in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"A certificate cannot be read ({error}); the JSON of a finished basis was "
                "expected: compute the basis again."
            ) from None


def quality(problem: SmallProblem, solution: SmallSolution) -> tuple[float, float]:
    """2-norm of I - U'U and largest residual, from the sums of the last round.

    No further round is needed: with U = Q Y both follow from Q'Q, Q'Z and Z'Z. The residual's
    square is a difference of these sums, so residuals below about 1e-8 of the operator's norm
    (or below the root of the noise) are reported as such. Sums cannot show their own error, so its
    expected effect is added.
    """
    Y = solution.Y
    theta = solution.eigenvalues / problem.unit
    defect = Y.T @ problem.gram @ Y - np.eye(Y.shape[1])
    error = 2.0 * problem.noise * math.sqrt(len(Y)) * float(np.linalg.norm(Y, 2)) ** 2
    squares = (
        np.einsum("ij,ij->j", Y, problem.squares @ Y)
        - 2.0 * theta * np.einsum("ij,ij->j", Y, problem.ritz @ Y)
        + theta**2 * np.einsum("ij,ij->j", Y, problem.gram @ Y)
    )
    # Rounding makes the difference uncertain by this much, relative to its largest term.
    blur = np.finfo(np.float64).eps * float(np.abs(problem.squares).max(initial=0.0)) + error
    residual = math.sqrt(max(float(squares.max(initial=0.0)), 0.0) + blur)
    return float(np.linalg.norm(defect, 2)) + error, residual * problem.unit
