"""A small JSON file that is written again and again, by whoever holds the lock of its folder."""

import json
from pathlib import Path
from typing import Any

from fedlap_app.errors import RunError
from fedlap_app.store.files import swap_private, write_private, writing


class RewrittenFile:
    """One JSON object in a file that only its owner can read; it is whole at any time.

    Parameters
    ----------
    path
        Where it is; its folder is made on the first write.
    durable
        Whether a write must survive a power failure: then each one is a new file, synced, in the
        place of the old one. Otherwise two files change places, which costs a hundredth and
        survives the end of the process.
    remedy
        What to do when it is damaged, and what is lost by that.
    """

    def __init__(
        self, path: Path, *, durable: bool, remedy: str = "restore it from a backup, or delete it"
    ) -> None:
        self.path = path
        self._durable, self._remedy = durable, remedy
        self._last: tuple[bytes, dict[str, Any]] | None = None

    def read(self) -> dict[str, Any] | None:
        """The object, for reading only; None: there is no file."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunError(f"{self._name} cannot be read ({error.strerror})") from None
        if self._last is None or self._last[0] != content:
            try:
                found = json.loads(content)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise self.damaged()
            self._last = content, found
        return self._last[1]

    def damaged(self) -> RunError:
        """What to raise where the file does not hold what it should."""
        return RunError(f"{self._name} is damaged: {self._remedy}")

    def write(self, text: str, value: dict[str, Any] | None = None) -> None:
        """Put the JSON text of an object in the place of the last one.

        Parameters
        ----------
        text
            The new content.
        value
            The object, if it will be read again (default: it is parsed then).
        """
        content = text.encode()
        with writing(self.path.name):
            if self._durable:
                write_private(self.path, content)
            else:
                swap_private(self.path, content)
        self._last = None if value is None else (content, value)

    @property
    def _name(self) -> str:
        """The file as errors name it, which the server may read: without its folders."""
        return f"{self.path.name} of the store"
