"""The ledger of a job: what its organisation sent and received, and who can read it.

It is the file ``ledger.json`` in the job's folder of the organisation's store, and never leaves it.
There is one entry a kind of content and way, with counts over all messages so far. A step is
entered before its reply leaves, and once: a resent or recomputed step changes nothing.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError, FedLapError
from fedlap_app.store import names
from fedlap_app.store.rewritten import RewrittenFile

FILE = names.LEDGER
FORMAT = 1
SENT, RECEIVED = "sent", "received"
NOISE = "differential privacy"
SERVER, RECIPIENT, MEMBERS, NOBODY = "server", "recipient", "all members", "nobody"
SELF = "this organisation"
OPEN, FINISHED = "open", "finished"

_ABOUT = "what this organisation sent and received in one job; see `fedlap audit --job`"


@dataclass
class Entry:
    """One kind of content, one way.

    Attributes
    ----------
    way, kind
        Sent or received, and what it is.
    readable_by
        Who can read a message of it by itself.
    sum_readable_by
        Who can read the sum that it goes into; empty: it goes into none.
    key_ids
        Public names of the keys that it is under; empty: it is in the clear.
    messages, values
        How many messages, and numbers or other items in them.
    """

    way: str
    kind: str
    readable_by: tuple[str, ...]
    sum_readable_by: tuple[str, ...] = ()
    key_ids: tuple[str, ...] = ()
    messages: int = 0
    values: int = 0

    def to_json(self) -> str:
        """One line; what stays the same from step to step is written once."""
        return f'{self._head}, "messages": {self.messages}, "values": {self.values}}}'

    @cached_property
    def _head(self) -> str:
        constant = ("way", "kind", "readable_by", "sum_readable_by", "key_ids")
        return json.dumps({name: getattr(self, name) for name in constant})[:-1]


class Ledger:
    """The ledger of one job; the caller holds the store's lock.

    Parameters
    ----------
    folder
        Folder of the job in the organisation's store.
    facts
        What the job is: organisation, job, members and so on.
    durable
        Whether it must survive a power failure.
    """

    def __init__(self, folder: Path, facts: Mapping[str, Any], *, durable: bool) -> None:
        self.facts: dict[str, Any] = dict(facts)
        self.state = OPEN
        self.step = -1
        self.vectors = 0
        self._entries: dict[tuple[str, str], Entry] = {}
        self._file = RewrittenFile(folder / FILE, durable=durable)

    @classmethod
    def open(
        cls,
        folder: Path,
        facts: Callable[[], Mapping[str, Any]],
        *,
        durable: bool,
        begun: bool = True,
    ) -> "Ledger":
        """Go on with the ledger in the folder; a lost or damaged one begins anew and says so.

        `begun` says whether there must be one; the other parameters are those of the class.
        """
        ledger = cls(folder, {}, durable=durable)
        try:
            found = ledger._file.read()
            if found is None and not begun:
                ledger.facts = dict(facts())
                return ledger
            ledger.facts, entries = parse(found or {})
            ledger.state, ledger.step, ledger.vectors = (
                ledger.facts.pop(key) for key in ("state", "step", "vectors")
            )
        except FedLapError:
            ledger.facts = {**facts(), "complete": False}
            return ledger
        ledger._entries = {(each.way, each.kind): each for each in entries}
        return ledger

    def enter(self, step: int, vectors: int, entries: Iterable[Entry], state: str = OPEN) -> None:
        """Add what one step sends and receives, and write the file.

        Parameters
        ----------
        step
            Number of the step; one that was entered before is not entered again.
        vectors
            Vectors that the job has exchanged with this step.
        entries
            What is added; the first entry of a kind says who can read it.
        state
            What becomes of the job: it goes on, or this was its last step.
        """
        if step <= self.step:
            return
        for each in entries:
            known = self._entries.setdefault((each.way, each.kind), each)
            if known is not each:
                known.messages += each.messages
                known.values += each.values
        self.step, self.vectors, self.state = step, vectors, state
        self._save()

    def tell(self, key: str, fact: Any) -> None:  # noqa: ANN401 - whatever JSON holds
        """Put another fact about the job in the place of the last."""
        self.facts[key] = fact
        self.__dict__.pop("_start", None)
        self._save()

    def close(self, state: str) -> None:
        """Say why the job does not go on; nothing is sent."""
        self.state = state
        self._save()

    def _save(self) -> None:
        """Write the file."""
        lines = ",\n".join([each.to_json() for each in self._entries.values()])
        self._file.write(
            f'{{{self._start},\n"state": {json.dumps(self.state)},\n"step": {self.step},\n'
            f'"vectors": {self.vectors},\n"entries": [\n{lines}\n]}}\n'
        )

    @cached_property
    def _start(self) -> str:
        """What stays the same from step to step."""
        stays = {"about": _ABOUT, "format": FORMAT, **self.facts}
        return ",\n".join(f"{json.dumps(key)}: {json.dumps(stays[key])}" for key in stays)


def parse(found: Mapping[str, Any]) -> tuple[dict[str, Any], list[Entry]]:
    """Facts (with state, step and vectors) and entries of what was read from a ledger."""
    if found.get("format") != FORMAT:
        raise DataError(
            f"its format is {found.get('format')!r} where {FORMAT} was expected: was it written "
            "by another release?"
        )
    facts = {key: value for key, value in found.items() if key not in ("about", "format")}
    try:
        entries = [_entry(each) for each in facts.pop("entries")]
        facts |= {"state": str(facts["state"])}
        facts |= {key: int(facts[key]) for key in ("step", "vectors")}
    except (KeyError, TypeError, ValueError):
        raise DataError("its entries cannot be read: was it changed?") from None
    return facts, entries


def _entry(values: Mapping[str, Any]) -> Entry:
    who, summed, ids = (
        tuple(map(str, values[key])) for key in ("readable_by", "sum_readable_by", "key_ids")
    )
    counts = int(values["messages"]), int(values["values"])
    return Entry(str(values["way"]), str(values["kind"]), who, summed, ids, *counts)
