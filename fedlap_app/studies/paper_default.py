"""The paper's algorithm with default TenSEAL parameters, for a few steps; the rest is extrapolated.

Arnoldi with modified Gram-Schmidt as printed: every inner product is a sum of its own, a vector of
one number in a ciphertext of 8192 coefficients. Real `ckks_vector` objects are encrypted,
serialised, added and decrypted here, all parties in one process, without pads, checks, headers,
stores and messages: whatever those cost is left out in the paper's favour, and so are the keys.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies.bare_loop import drive
from fedlap_app.studies.bare_parts import Array, Blocks, Parts
from fedlap_app.studies.offline_bars import PAPER
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.sums.ckks.tenseal_contexts import load_tenseal
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT

FEW_VECTORS = 3
_SLOTS = TENSEAL_DEFAULT.slots


@dataclass
class Spent:
    """What sums took so far, all parties together.

    Attributes
    ----------
    ciphertexts, up, down
        Ciphertexts uploaded, their bytes, and bytes of sums downloaded.
    """

    ciphertexts: int = 0
    up: int = 0
    down: int = 0


class TensealSums:
    """Sums through `ckks_vector`, one key for each recipient and one for all.

    Parameters
    ----------
    recipients : int
        Members.
    """

    def __init__(self, recipients: int) -> None:
        self._ts: Any = load_tenseal()
        self.spent = Spent()
        self._contexts = [self._context() for _ in range(recipients + 1)]

    def _context(self) -> Any:  # noqa: ANN401 - tenseal has no types
        chosen = TENSEAL_DEFAULT
        primes = list(chosen.primes)
        made = self._ts.context(self._ts.SCHEME_TYPE.CKKS, chosen.degree, -1, primes)
        made.global_scale = chosen.scale
        return made

    def total(self, vectors: Sequence[Array], recipient: int, readers: int) -> Array:
        """Sum of the members' vectors for a recipient (-1: for all), read by so many."""
        context = self._contexts[recipient]
        found = []
        for start in range(0, vectors[0].size, _SLOTS):
            parts = [vector[start : start + _SLOTS].tolist() for vector in vectors]
            sealed = [self._ts.ckks_vector(context, part).serialize() for part in parts]
            total = self._ts.ckks_vector_from(context, sealed[0])
            for each in sealed[1:]:
                total += self._ts.ckks_vector_from(context, each)
            data = total.serialize()
            self.spent.ciphertexts += len(sealed)
            self.spent.up += sum(map(len, sealed))
            self.spent.down += readers * len(data)
            for _ in range(readers):
                opened = self._ts.ckks_vector_from(context, data).decrypt()
            found.append(np.array(opened))
        return np.concatenate(found)


class TensealParts(Parts):
    """Parts of one graph whose sums are made of ciphertexts."""

    def use(self, sums: TensealSums) -> None:
        """Exchange through these sums from now on."""
        self.sums = sums

    def small(self, numbers: Sequence[Array]) -> Array:
        """Sum of the members' small numbers, for all of them."""
        return self.sums.total(numbers, -1, len(numbers))

    def exchange(self, owed: Blocks) -> Blocks:
        """What every part receives when all give what they owe, by its own ciphertexts."""
        received = []
        starts = [0, *self._ends[:-1]]
        for target, (start, end) in enumerate(zip(starts, self._ends, strict=True)):
            vectors = []
            for sender, (block, foreign) in enumerate(zip(owed, self._foreign, strict=True)):
                if sender != target:
                    own = (foreign >= start) & (foreign < end)
                    rows = np.zeros((int(end - start), block.shape[1]))
                    rows[foreign[own] - start] = block[own]
                    vectors.append(rows.ravel())
            total = self.sums.total(vectors, target, 1)
            received.append(total.reshape(-1, owed[0].shape[1]))
        return received


def paper_row(settings: Settings, subgraphs: Sequence[Subgraph]) -> dict[str, Any]:
    """The row of a benchmark: a few steps, and the whole run by its number of ciphertexts."""
    settings = replace(settings, solver="arnoldi", backend="plain", profile="auto", block=1)
    few = replace(settings, vectors=min(FEW_VECTORS, settings.vectors), rank=0)
    parts = TensealParts(subgraphs, few.offline_spec, few.seed)
    parts.prepare()
    sums = TensealSums(len(subgraphs))
    parts.use(sums)
    started, computed = time.perf_counter(), time.process_time()
    # Its own noise is no reason to stop here.
    drive(parts, lambda smalls: parts.small(smalls) if smalls[0].size else smalls[0])
    wall, cpu = time.perf_counter() - started, time.process_time() - computed
    share = _ciphertexts(settings, subgraphs) / sums.spent.ciphertexts
    up, down = (share * size / len(subgraphs) for size in (sums.spent.up, sums.spent.down))
    values = sum(_values(settings, subgraphs)) / len(subgraphs)
    return {
        "solver": "arnoldi",
        "backend": PAPER,
        "profile": TENSEAL_DEFAULT.name,
        "extrapolated": True,
        "round_trips": settings.offline_spec.rounds() + 1,
        "bytes_up_per_client": up,
        "bytes_down_per_client": down,
        "values_per_client": values,
        "bytes_per_value_up": up / values,
        "seconds": share * wall,
        "cpu_seconds": share * cpu,
        "cpu_seconds_iteration": share * cpu,
    }


def _lengths(settings: Settings, subgraphs: Sequence[Subgraph]) -> Iterator[list[int]]:
    """For every round the lengths of all vectors that all members send."""
    from fedlap_app.studies.planning.shape import shape_of

    phase = Phase(settings.offline_spec, shape_of(subgraphs), settings.seed)
    nodes, members = [part.num_nodes for part in subgraphs], len(subgraphs)
    for this in phase.rounds[1:]:
        lengths = [this.small] * members if this.small else []
        if this.width:
            lengths += [this.width * count for count in nodes for _ in range(members - 1)]
        yield lengths


def _ciphertexts(settings: Settings, subgraphs: Sequence[Subgraph]) -> int:
    return sum(
        -(-length // _SLOTS) for lengths in _lengths(settings, subgraphs) for length in lengths
    )


def _values(settings: Settings, subgraphs: Sequence[Subgraph]) -> list[int]:
    return [length for lengths in _lengths(settings, subgraphs) for length in lengths]
