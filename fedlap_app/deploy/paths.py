"""Folders whose names end up in start commands, units and the proxy's configuration."""

from pathlib import Path

from fedlap_app.errors import ConfigError

_QUOTES = "'\"\\`"
# What nginx, sed and systemd give a meaning of its own, even inside quotes.
_SPECIAL = _QUOTES + "$%&|"


def check_local_path(path: Path) -> None:
    """Refuse a folder of an organisation that node-config and environment files cannot name."""
    _refuse(path, _QUOTES, "a quote, backslash or invisible character")


def check_served_path(path: Path) -> None:
    """Refuse a folder of the coordinator that nginx, units and scripts cannot name."""
    _refuse(path, _SPECIAL, "a quote, backslash, invisible character or one of $ % & |")


def _refuse(path: Path, letters: str, what: str) -> None:
    if not str(path).isprintable() or any(letter in str(path) for letter in letters):
        raise ConfigError(f"The path {str(path)!r} has {what}: move the folder")
