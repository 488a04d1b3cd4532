"""Scores of rounds for TensorBoard and MLflow: what the server may know of a run, while it runs.

Both are optional: `pip install fedlap[tensorboard]`, `pip install fedlap[mlflow]`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from fedlap_app.errors import ConfigError
from fedlap_app.methods.scores import SPLITS
from fedlap_app.reports.run_facts import read_rounds, read_settings

_KINDS = ("accuracy", "loss", "macro_f1")


class Tracker(Protocol):
    """Where scores go."""

    def add(self, name: str, value: float, step: int) -> None:
        """A score of a round."""

    def close(self) -> None:
        """There is no more."""


class Tracking:
    """Hands every round of a run folder on once; nobody has to ask in time.

    Parameters
    ----------
    folder
        The run folder.
    start
        Opens the tracker, given the name and the settings of the run.
    """

    def __init__(self, folder: Path, start: Callable[[str, Mapping[str, Any]], Tracker]) -> None:
        self._folder = folder
        self._tracker = start(folder.name, read_settings(folder))
        self._done = 0

    def look(self) -> None:
        """Hand on the rounds that came since the last look."""
        try:
            rows = read_rounds(self._folder)
        except ValueError:  # a line is half written
            return
        for step, row in enumerate(rows[self._done :], self._done + 1):
            for split in SPLITS:
                for kind in _KINDS:
                    value = row.get(f"{split}_{kind}")
                    if value is not None:
                        self._tracker.add(f"{kind}/{split}", float(value), step)
        self._done = len(rows)

    def close(self) -> None:
        """Hand on the rest."""
        self.look()
        self._tracker.close()


@contextmanager
def tracking(
    folder: Path, tensorboard: Path | None = None, mlflow: str | None = None
) -> Iterator[Callable[[], None]]:
    """Hand the rounds of a run folder on; what comes back is to be called now and then.

    Parameters
    ----------
    folder
        The run folder.
    tensorboard, mlflow
        A folder for event files, and an address of MLflow.
    """
    found: list[Tracking] = []

    def look() -> None:
        for each in found:
            each.look()

    with ExitStack() as stack:
        if tensorboard is not None:
            found.append(Tracking(folder, partial(TensorBoard, tensorboard)))
            stack.callback(found[-1].close)
        if mlflow is not None:
            found.append(Tracking(folder, partial(MLflow, mlflow)))
            stack.callback(found[-1].close)
        yield look


class TensorBoard:
    """Event files below a folder, which `tensorboard --logdir` shows."""

    def __init__(self, root: Path, name: str, settings: Mapping[str, Any]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise _missing("tensorboard") from None
        self._writer = SummaryWriter(str(root / name))
        told = "\n".join(f"    {key} = {value}" for key, value in settings.items())
        self._writer.add_text("settings", told)

    def add(self, name: str, value: float, step: int) -> None:
        """A score of a round."""
        self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """There is no more."""
        self._writer.close()


class MLflow:
    """A run of MLflow in the experiment `fedlap`, at an address or in a file."""

    def __init__(self, address: str, name: str, settings: Mapping[str, Any]) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise _missing("mlflow") from None
        try:
            self._client = MlflowClient(address)
            known = self._client.get_experiment_by_name("fedlap")
            of = known.experiment_id if known else self._client.create_experiment("fedlap")
            self._run = self._client.create_run(of, run_name=name).info.run_id
            for key, value in settings.items():
                self._client.log_param(self._run, key, value)
        except Exception as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigError(
                f"MLflow at {address} cannot be written ({said}): name its address, or a file as "
                "in sqlite:///mlflow.db"
            ) from None

    def add(self, name: str, value: float, step: int) -> None:
        """A score of a round."""
        self._client.log_metric(self._run, name, value, step=step)

    def close(self) -> None:
        """There is no more."""
        self._client.set_terminated(self._run)


def _missing(extra: str) -> ConfigError:
    return ConfigError(f"{extra} is not installed: pip install 'fedlap[{extra}]'")
