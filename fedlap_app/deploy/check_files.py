"""Checks that the folders of a coordinator and of an organisation have in common."""

from collections.abc import Sequence
from pathlib import Path

import flwr

from fedlap_app.deploy.certificates import certificate_fingerprint, read_certificate
from fedlap_app.deploy.findings import Finding, bad, good, soon
from fedlap_app.flower.package import installed_code
from fedlap_app.privacy.federation import FILE, Federation
from fedlap_app.store.files import is_private
from fedlap_app.version import VERSION


def check_private(whose: str, path: Path) -> Finding:
    """Whether a secret is there, holds something, and is for its owner only."""
    what = f"{whose}'s {path.name}"
    if not path.is_file():
        return bad(what, f"there is no {path}: restore it from a backup or make new keys")
    if not path.stat().st_size:
        return bad(what, f"{path} is empty: restore it from a backup or make new keys")
    if not is_private(path):
        mode = path.stat().st_mode & 0o777
        return bad(
            what, f"mode {mode:04o} lets others read it: `chmod 600 {path}` and make new keys"
        )
    return good(what, "only its owner can read it")


def check_shut(folder: Path) -> Finding:
    """Whether only its owner may put files into a folder."""
    if not folder.is_dir():
        return bad(folder.name, f"there is no folder {folder}: restore it from a backup")
    mode = folder.stat().st_mode & 0o777
    if mode & 0o022:
        says = f"others may write into {folder} (mode {mode:04o}): `chmod go-w {folder}`"
        return bad(folder.name, says)
    return good(folder.name, f"mode {mode:04o}")


def check_present(what: str, paths: Sequence[Path], remedy: str) -> Finding:
    """Whether files are there that nobody changes."""
    missing = [path for path in paths if not path.is_file() or not path.stat().st_size]
    if missing:
        return bad(what, f"there is no {missing[0]}, or it is empty: {remedy}")
    return good(what, ", ".join(path.name for path in paths))


def check_authority(what: str, path: Path, federation: Federation) -> Finding:
    """Whether a certificate is that of the federation's authority."""
    fingerprint = certificate_fingerprint(read_certificate(path))
    if fingerprint != federation.authority:
        return bad(
            what,
            f"the SHA-256 of {path} is {fingerprint} but {FILE} says {federation.authority}: get "
            "both files again and ask the coordinator",
        )
    return good(what, f"SHA-256 {fingerprint}")


def check_versions(federation: Federation) -> Finding:
    """Whether versions and code here are those of the federation."""
    ours = f"FedLap {VERSION}, Flower {flwr.__version__}"
    theirs = f"FedLap {federation.version}, Flower {federation.flower}"
    if ours != theirs:
        return bad("versions", f"here {ours}, the federation {theirs}: install the same")
    if federation.code not in ("", installed_code()):
        return soon(
            "versions",
            f"{ours}, but the code here ({installed_code()[:16]}...) is not the coordinator's "
            f"({federation.code[:16]!r}...): find out with the other organisations who changed it",
        )
    return good("versions", ours)
