"""Knobs of the data: which graph, and who holds which part of it."""

from dataclasses import dataclass
from typing import ClassVar

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.datasets import DATASETS
from fedlap_app.graphs.partitions import PARTITIONS
from fedlap_app.knobs import Options, knob


@dataclass(frozen=True)
class DataOptions(Options):
    """Which graph is divided among whom."""

    title: ClassVar[str] = "Data"

    dataset: str = knob("banks", "benchmark data set", choices=tuple(DATASETS))
    data: str = knob(
        "", "folder of organisation folders, in place of a data set", folder=True, private=True
    )
    clients: int = knob(
        0,
        "organisations; 0 means as many as the simulation has nodes",
        more="With 0 there are two in `flwr run .` and `fedlap train`, five in `make run` and "
        "`fedlap run`, and one for each folder of `data`; a deployed run takes all SuperNodes "
        "that are there. A preset that leaves it at 0 can be run with any number of nodes.",
        low=0,
        high=10_000,
    )
    partition: str = knob(
        "auto",
        "who holds which node; auto: natural owners, else random",
        more="Only the data set `banks` has natural owners.",
        choices=PARTITIONS,
    )
    directed: bool = knob(False, "keep the direction of edges")
    split_seed: int = knob(
        -1, "seed of torch's random_split, which then draws the split; -1: it follows from seed",
        low=-1, high=2**63 - 1, advanced=True,
    )  # fmt: skip
    train_ratio: float = knob(0.1, "share of labelled nodes for training", low=0.0, high=1.0)
    val_ratio: float = knob(0.1, "share of labelled nodes for validation", low=0.0, high=1.0)
    test_ratio: float = knob(0.8, "share of labelled nodes for the test", low=0.0, high=1.0)
    accounts: int = knob(
        2000, "accounts of the data set banks", low=200, high=1_000_000,
        only=("dataset", ("banks",)), advanced=True,
    )  # fmt: skip
    neighbours: int = knob(
        8, "nearest neighbours of the data set digits", low=1, high=100,
        only=("dataset", ("digits",)), advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.train_ratio + self.val_ratio + self.test_ratio
        if total > 1 + 1e-9:
            raise ConfigError(
                f"train-ratio + val-ratio + test-ratio = {total:g}: they must add up to at most 1, "
                f"for example with test-ratio = {max(0.0, 1 - self.train_ratio - self.val_ratio):g}"
            )
        if self.train_ratio == 0.0:
            raise ConfigError("train-ratio = 0 leaves nothing to train on: try train-ratio = 0.1")
