"""What a check found: one line each, for people and for machines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fedlap_app.errors import FedLapError

GOOD, SOON, BAD = "ok", "warn", "fail"
_SOON = timedelta(days=30)


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, how it is, and a sentence that says what to do if needed."""

    what: str
    state: str
    says: str

    @property
    def failed(self) -> bool:
        """Whether it will not work like this."""
        return self.state == BAD

    @property
    def line(self) -> str:
        """One line for people."""
        return f"{self.state:<5} {self.what}: {self.says}"


def good(what: str, says: str) -> Finding:
    """A check that found nothing."""
    return Finding(what, GOOD, says)


def soon(what: str, says: str) -> Finding:
    """Something that works but wants attention."""
    return Finding(what, SOON, says)


def bad(what: str, says: str) -> Finding:
    """Something that will not work."""
    return Finding(what, BAD, says)


def wrong(what: str, error: FedLapError | OSError) -> Finding:
    """An error as a finding: one sentence with what to do."""
    if isinstance(error, FedLapError):
        return bad(what, str(error))
    if isinstance(error, FileNotFoundError):
        return bad(what, f"there is no {error.filename}: restore it from a backup")
    says = f"{error.filename or 'a file'} cannot be read ({error.strerror or error})"
    return bad(what, f"{says}: check the path and its permissions")


def attempt(what: str, check: Callable[[], Finding]) -> Finding:
    """A check whose errors are findings too."""
    try:
        return check()
    except (FedLapError, OSError) as error:
        return wrong(what, error)


def expiry(what: str, end: datetime, remedy: str, now: datetime | None = None) -> Finding:
    """How long something is still good."""
    now = now or datetime.now(UTC)
    left = end - now
    if left <= timedelta(0):
        return bad(what, f"expired on {end:%Y-%m-%d %H:%M} UTC: {remedy}")
    text = f"good until {end:%Y-%m-%d} ({left.days} days)"
    return soon(what, f"{text}: {remedy}") if left < _SOON else good(what, text)


def failed(findings: Sequence[Finding]) -> bool:
    """Whether any check failed."""
    return any(finding.failed for finding in findings)


def report(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings for machines."""
    rows = [{"check": each.what, "state": each.state, "says": each.says} for each in findings]
    return {"ok": not failed(findings), "checks": rows}
