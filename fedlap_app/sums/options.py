"""Knobs of sealed sums."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Options, knob
from fedlap_app.privacy.accounting import ORGANISATION, UNITS, Promise
from fedlap_app.privacy.policy import BACKENDS, TRAINING_SEALS
from fedlap_app.spectral.neighbourhood import SCALINGS
from fedlap_app.sums.choice import AUTO, PROFILES, require_profile
from fedlap_app.sums.job.spec import LAYOUTS
from fedlap_app.sums.lanes import WIDTHS
from fedlap_app.sums.programs.neighbour_sums import MOST_HOPS

_SEALS = ("mask", "ckks")


@dataclass(frozen=True)
class NeighbourOptions(Options):
    """What the program neighbour-sums adds up, where a run has it."""

    title: ClassVar[str] = "Neighbour sums"

    neighbour_hops: int = knob(
        2, "hops of sums over neighbours (programs with neighbour-sums)",
        low=1, high=MOST_HOPS, advanced=True,
    )  # fmt: skip
    neighbour_scaling: str = knob(
        "sym", "how each of these hops is scaled; mean: by degrees",
        choices=SCALINGS, advanced=True,
    )  # fmt: skip


@dataclass(frozen=True)
class SealedTrainingOptions(Options):
    """How training hides what every organisation learned by itself."""

    title: ClassVar[str] = "Sealed training"

    training_backend: str = knob(
        "mask", "how updates and scores are hidden from the server; plain: not at all",
        choices=TRAINING_SEALS,
    )  # fmt: skip
    publish_scores: bool = knob(
        True, "let the server see the accuracy of all organisations together, once a stage",
        only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    publish_model: bool = knob(
        False, "put the trained model into the run folder, where every policy allows it",
        only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    training_bits: int = knob(
        24, "fraction bits of a sealed change; it has 31 with those before the point",
        low=8, high=30, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    training_ring: int = knob(
        32, "bits of a number in a training sum, 32, 16 or 12; fewer send less and round more",
        low=12, high=32, only=("training-backend", ("mask",)), advanced=True,
    )  # fmt: skip
    largest_step: float = knob(
        1000.0, "norm of a round's mean change above which nobody goes on",
        low=1e-6, high=1e9, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    dp_noise: float = knob(
        0.0, "noise on the sum of updates, in units of dp-clip; 0: no differential privacy",
        more="Noise is never seeded, so the same seed gives other results.",
        low=0.0, high=10_000.0, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    dp_unit: str = knob(
        ORGANISATION, "what dp-noise hides: an organisation's update, or a node's gradient in it",
        more="With `organisation` all organisations count alike. `node` is for models whose "
        "examples share no inputs (`model = none`, `decoupled` with `hops = 0`, `branches = mlp`) "
        "and needs one clipped gradient a round (`optimizer-at = server`, or `fedsgd`).",
        choices=UNITS, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    dp_clip: float = knob(
        1.0, "norm to which what leaves of a unit is clipped, where dp-noise is above 0",
        low=1e-6, high=1e6, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    dp_delta: float = knob(
        1e-5, "probability with which epsilon need not bound what an update shows",
        low=1e-12, high=0.1, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip
    dp_colluders: int = knob(
        1, "members that may tell each other their noise; that of the others is enough",
        low=0, high=10_000, only=("training-backend", _SEALS), advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training_ring not in WIDTHS:
            raise ConfigError(f"training-ring = {self.training_ring}: take 32, 16 or 12")
        if self.training_backend == "ckks" and self.training_ring != max(WIDTHS):
            raise ConfigError(
                f"training-ring = {self.training_ring} with training-backend = 'ckks' sends no "
                f"less, as a number takes a coefficient of a ciphertext whatever its bits: set "
                f"training-ring = {max(WIDTHS)} or training-backend = 'mask'"
            )
        if not self.dp_noise:
            return
        if self.training_ring != max(WIDTHS):
            raise ConfigError(
                f"dp-noise = {self.dp_noise:g} needs sums with room for it and training-ring = "
                f"{self.training_ring} has none: set training-ring = {max(WIDTHS)}"
            )
        room, needed = 2.0 ** (31 - self.training_bits), self.dp_clip * (1 + 10 * self.dp_noise)
        if needed >= room:
            raise ConfigError(
                f"dp-clip = {self.dp_clip:g} with dp-noise = {self.dp_noise:g} may reach "
                f"{needed:.3g} in a sum that holds {room:g}: set training-bits = "
                f"{max(8, 30 - math.ceil(math.log2(needed)))}, or a smaller dp-clip"
            )

    @property
    def promise(self) -> Promise | None:
        """What noise on updates is to promise; None: there is none."""
        if not self.dp_noise or self.training_backend == "plain":
            return None
        return Promise(self.dp_clip, self.dp_noise, self.dp_delta, self.dp_colluders, self.dp_unit)


@dataclass(frozen=True)
class SumOptions(Options):
    """How sums are hidden from who adds them, and how the job that makes them goes on."""

    title: ClassVar[str] = "Sealed sums"

    backend: str = knob("ckks", "how sums are hidden from the server", choices=BACKENDS)
    profile: str = knob(
        AUTO,
        "parameters of the back end; auto: what the operator needs",
        more="`auto` is `q44` for `mask`, `float64` for `plain`, and for `ckks` `ckks-2048`, or "
        "`ckks-4096` for the operators `laplacian`, `adjacency` and `directed`, whose values grow "
        "with degrees.",
        choices=(AUTO, *PROFILES),
        advanced=True,
    )
    encryption_processes: int = knob(
        1, "processes of a client that encrypt (ckks); more pay for large graphs and models",
        low=1, high=256, private=True, advanced=True,
    )  # fmt: skip
    insecure_no_pads: bool = knob(
        False, "leave out the pads inside of ciphertexts (ckks)", advanced=True
    )
    hide_topology: bool = knob(
        True, "hide from the server who shares edges with whom", advanced=True
    )
    layout: str = knob(
        "full", "nodes that get a slot in block sums", choices=LAYOUTS, advanced=True
    )
    resume: bool = knob(
        True, "go on with an unfinished basis of the same settings and members",
        private=True, advanced=True,
    )  # fmt: skip
    refresh_basis: bool = knob(
        False, "compute the basis again even if all hold a finished one",
        private=True, advanced=True,
    )  # fmt: skip
    trust_on_first_use: bool = knob(
        False, "accept organisations without a pinned fingerprint", advanced=True
    )
    message_mb: float = knob(
        32.0, "larger messages are sent in parts", low=0.001, high=512.0,
        private=True, advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        require_profile(self.backend, self.profile, no_pads=self.insecure_no_pads)
