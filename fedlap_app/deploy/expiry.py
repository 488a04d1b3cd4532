"""Whether certificates are still good, for start scripts: ``python -m ... FILE REMEDY``."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from fedlap_app.deploy.certificates import read_certificate
from fedlap_app.errors import ConfigError


def expired(path: Path, remedy: str, now: datetime | None = None) -> str:
    """One sentence about a certificate that has run out; empty while it is good."""
    try:
        end = read_certificate(path).not_valid_after_utc
    except (ConfigError, OSError) as error:
        return str(error)
    if end > (now or datetime.now(UTC)):
        return ""
    return f"the certificate {path} expired on {end:%Y-%m-%d %H:%M} UTC: {remedy}"


def main(path: str, remedy: str) -> int:
    """Say what is wrong; exit code 2 if something is."""
    sentence = expired(Path(path), remedy)
    if sentence:
        print(sentence, file=sys.stderr)
    return 2 if sentence else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
