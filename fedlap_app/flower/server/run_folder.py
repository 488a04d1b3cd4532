"""The run folder: configuration, a line a round, the summary and the global model."""

import json
import math
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store import names, places
from fedlap_app.store.files import write_shared
from fedlap_app.sums.programs import Krylov


def root_of(settings: Settings) -> Path:
    """Where the run folders of these settings are."""
    root = Path(settings.run_dir).expanduser() if settings.run_dir else places.runs_dir()
    return root.absolute()


def offline_file(program: str) -> str:
    """Where the price of a program before training is."""
    return names.PRICE if program == Krylov.name else f"offline-{program}.json"


class RunFolder:
    """Files of one run, below an absolute path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, settings: Settings, run_id: int) -> "RunFolder":
        """Make a new folder whose name ends with the number of the run."""
        data = Path(settings.data).name if settings.data else settings.dataset
        stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
        path = root_of(settings) / f"{stamp}-{data}-{settings.method}-{run_id}"
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(
                f"the run folder {path} cannot be created ({error.strerror}): "
                "set run-dir to a folder that can be written"
            ) from None
        return cls(path)

    @classmethod
    def find(cls, run_id: int, root: Path | None = None) -> "RunFolder | None":
        """Folder of the run with this number, if there is one."""
        found = sorted((root or places.runs_dir()).glob(f"*-{run_id}"))
        return cls(found[-1]) if found else None

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a file of the run atomically; numbers that are not finite become null."""
        text = json.dumps(_jsonable(value), indent=2, allow_nan=False)
        write_shared(self.path / name, (text + "\n").encode())

    @property
    def finished(self) -> bool:
        """Whether the run came to its end: the summary is its last file."""
        return (self.path / names.SUMMARY).exists()

    def read_json(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Read a file of the run."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path / name} cannot be read: {error}") from None

    def add_round(self, row: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``."""
        line = (json.dumps(_jsonable(row), allow_nan=False) + "\n").encode()
        with (self.path / names.METRICS).open("ab", buffering=0) as handle:
            before, done = handle.seek(0, os.SEEK_END), 0
            try:
                while done < len(line):
                    done += handle.write(line[done:])
            except OSError:  # half a line would make all the others unreadable
                handle.truncate(before)
                raise

    def read_rounds(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``; none when no round was finished."""
        path = self.path / names.METRICS
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def write_model(self, model: ModelFile) -> None:
        """Write the global model as ``model.npz``."""
        write_shared(self.path / model_file.FILE, model.to_bytes())


def _jsonable(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return os.fspath(value) if isinstance(value, Path) else value
