"""Follow a run by the status that it writes into its folder."""

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.cli.progress import Progress
from fedlap_app.cli.status_file import read_status
from fedlap_app.cli.voice import counted
from fedlap_app.errors import FedLapError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.store import names

if TYPE_CHECKING:
    from types import TracebackType

_SECONDS = 0.5
ENDED = ("finished", "failed", "stopped", "died")


class Follower:
    """Shows the progress of a run of this machine while something else waits for its end.

    Parameters
    ----------
    root
        Where its folder will appear.
    run_id
        Its number.
    """

    def __init__(self, root: Path, run_id: int) -> None:
        self._root, self._name = root, f"*-{run_id}"
        self._progress = Progress()
        self._told = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "Follower":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        self._progress.end()

    def _follow(self) -> None:
        while not self._over.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        for folder in self._root.glob(self._name):
            try:
                found = read_status(folder)
            except FedLapError:  # it is not written yet
                continue
            self._tell_offline(folder, found)
            show(self._progress, found)

    def _tell_offline(self, folder: Path, found: dict[str, Any]) -> None:
        """Say what the phase before training took, which may be over before anybody looks."""
        if self._told or found["phase"] in ("gathering", "offline"):
            return
        self._told = True
        if (folder / names.PRICE).is_file():
            spent = RunFolder(folder).read_json(names.PRICE)
            how = "reused" if spent["reused"] else f"done in {spent['seconds']:.1f} s"
            trips = counted(spent["round_trips"] + spent["handshake"], "round trip")
            self._progress.say(f"sealed sums: {how}, {trips}")


def show(progress: Progress, found: dict[str, Any]) -> None:
    """Show what a status says of the phase that it is in."""
    units = found["progress"]
    if found["state"] == "running":
        progress.show(found["phase"], units["done"], units["total"], units["unit"])


def watch(folder: Path) -> dict[str, Any]:
    """Show the progress of a run until it ends; its last status."""
    progress = Progress(stream=sys.stdout)
    while True:
        found = read_status(folder)
        show(progress, found)
        if found["state"] in ENDED or found["state"] == "unknown":
            progress.end()
            return found
        time.sleep(_SECONDS)
