"""What files of run folders and stores are called: whoever writes, reads or cleans asks here.

A store has the lock and the marker, four small records, finished results (``basis-HASH``), files
of jobs before training (``offline-JOB-WHAT``) and of sealed trainings (``training-JOB-WHAT``), a
folder for who the organisation is (``offline``) and one a job for what outlives it (``jobs``).
"""

import re

# Of a run folder.
CONFIG, METRICS, SUMMARY, PRICE = "config.json", "metrics.jsonl", "summary.json", "offline.json"
ERROR, STATUS, COMPARISON = "error.json", "status.json", "compare.json"

# Of a client store.
LOCK, MARKER = "lock", "fedlap-store"
ERRORS = "errors.log"
CONSENT, BEGUN, RUNS, NOISED = "consent.json", "begun.json", "runs.json", "noised.json"
COUNTS = (CONSENT, BEGUN, RUNS, NOISED)
OFFLINE, POST, JOBS = "offline", "post", "jobs"
IDENTITY, SECRET, PEERS = "identity", "secret", "peers.json"
ABSENT, MISMATCH, REFUSED = "missing-organisations.log", "edge-mismatch.log", "consent.log"
LOGS = (ABSENT, MISMATCH, REFUSED)
LEDGER, RATION, ROUNDS = "ledger.json", "ration.json", "rounds.jsonl"
MODEL, EVALUATION, GRAPH = "model.npz", "evaluation.json", "graph"
CARD, ANSWERED, COLUMNS, ORDER = "card", "answered", "columns", "order"
SETTLED, LISTED, REPLIES = "settled", "listed", ("reply-even", "reply-odd")
HOME, BEST, KEPT, SAID = "home", "best", "kept", "said"

_HASH = "[0-9a-f]{32}"
_SERIES = "|".join((SETTLED, LISTED, *REPLIES, BEST, KEPT))


class Name:
    """Names of one kind, which are made of fields and taken apart again.

    Parameters
    ----------
    form
        As for `str.format`.
    fields
        Regular expression of each field.
    """

    def __init__(self, form: str, **fields: str) -> None:
        self._form = form
        pieces = re.split(r"\{(\w+)[^}]*\}", form)
        found = [f"(?P<{p}>{fields[p]})" if n % 2 else re.escape(p) for n, p in enumerate(pieces)]
        self._pattern = re.compile("".join(found))

    def __call__(self, **values: object) -> str:
        """The name with these fields."""
        return self._form.format(**values)

    def read(self, name: str) -> dict[str, str] | None:
        """Fields of a name; None: it is of another kind."""
        found = self._pattern.fullmatch(name)
        return None if found is None else found.groupdict()

    def __contains__(self, name: str) -> bool:
        return self.read(name) is not None


RESULT = Name("{kind}-{key}", kind="[a-z][a-z-]*", key=_HASH)
PHASE = Name("offline-{job}", job=_HASH)  # the ledger of a job before training
PHASE_FILE = Name("offline-{job}-{what}", job=_HASH, what=f"{ANSWERED}-[01]|{COLUMNS}|{ORDER}")
PENDING = Name("offline-{what}", what=CARD)
SEALED_FILE = Name("training-{job}-{what}", job=_HASH, what=f"(?:{_SERIES})-[01]|{HOME}|{SAID}")
TRAININGS = "trainings"
KEYS = Name(f"{TRAININGS}-{{key}}", key=_HASH)  # of sealed trainings that are not finished
TRAINING = Name("train-{run:020d}", run=r"\d{20}")
GUESSES = Name("guesses-{stage}.npz", stage=r"\d+")
MOMENTS = Name("moments-{stage}-{number}.npz", stage=r"\d+", number=r"\d+")
PART = Name(
    "{which}-{job}-{step}{index}",
    which="own|common|reply", job=f"{_HASH}|none", step=r"\d+", index=r"(?:-\d+)?",
)  # fmt: skip


_UNFINISHED = re.compile(r"\.(.+)\.(?:part|old)")


def unfinished(name: str, writer: str = "") -> str:
    """What a file is called while it is written; `writer` tells those apart who may do so."""
    return f".{name}.{writer}.part" if writer else f".{name}.part"


def finished(name: str) -> str:
    """What an unfinished file would have become; empty: it is none."""
    found = _UNFINISHED.fullmatch(name)
    return found[1] if found else ""
