"""A page that shows how a run goes on, for the one who started it: on the loopback only.

The address holds a random token, and the Host header must be the loopback's: a page elsewhere that
lets its name point here learns nothing. Nothing can be changed through it.
"""

import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedlap_app.cli.status_file import read_status
from fedlap_app.errors import FedLapError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.store import names

HOST = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ASSETS = {
    "": ("live.html", "text/html; charset=utf-8"),
    "live.js": ("live.js", "text/javascript; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
}
_SCORES = ("train_accuracy", "val_accuracy", "test_accuracy")


class LivePage(ThreadingHTTPServer):
    """Serves the status of one run folder.

    Parameters
    ----------
    folder
        The run folder; it is read anew for every question.
    port
        Port on the loopback (default: a free one).
    """

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.folder = folder
        self.token = secrets.token_urlsafe(24)

    @property
    def hosts(self) -> tuple[str, ...]:
        """What a Host header may say."""
        return tuple(f"{name}:{self.server_address[1]}" for name in (HOST, "localhost"))

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def status(self) -> dict[str, Any]:
        """What the page shows."""
        found = read_status(self.folder)
        rows = RunFolder(self.folder).read_rounds()
        rounds = [{key: row.get(key) for key in _SCORES} for row in rows]
        hidden = ("host", "pid", "run_folder")
        return {**{k: v for k, v in found.items() if k not in hidden}, "rounds": rounds}


class _Handler(BaseHTTPRequestHandler):
    server: LivePage

    def do_GET(self) -> None:
        """Answer with the page, its parts or the status."""
        name = self._asked()
        if name is None:
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
        elif name == names.STATUS:
            try:
                body = json.dumps(self.server.status()).encode()
            except (FedLapError, ValueError):
                self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"{}", "application/json")
                return
            self._send(HTTPStatus.OK, body, "application/json")
        else:
            file, kind = _ASSETS[name]
            self._send(HTTPStatus.OK, (files("fedlap_app.reports") / file).read_bytes(), kind)

    def _asked(self) -> str | None:
        """What is asked for; None: nothing that this host and token give."""
        token, _, name = self.path.removeprefix("/").partition("/")
        if self.headers.get("Host", "") not in self.server.hosts:
            return None
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return None
        return name if name in _ASSETS or name == names.STATUS else None

    def _send(self, code: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(code)
        for header, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", _POLICY),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the line would hold the token."""
