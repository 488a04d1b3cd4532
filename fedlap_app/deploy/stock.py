"""Processes of Flower here that would install and run, beside the data, the code of a run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from flwr.common.config import parse_config_args

from fedlap_app.deploy.findings import Finding, bad

_PROCESSES = Path("/proc")
_NODE_PORT = "9094"  # of a SuperNode that is told none
_REMEDY = (
    "it installs and runs the code that comes with a run: stop it, and start the SuperNode with "
    "--isolation process and `python -I -m client_app.superexec`, as start.sh of `fedlap keys "
    "request` does"
)


def find_stock_processes(data: Path, port: str | None = None) -> list[Finding]:
    """Running SuperNodes and SuperExecs of an organisation that are not as they should be.

    Parameters
    ----------
    data : the organisation folder, which its SuperNode names.
    port : of its SuperNode, where known.
    """
    running = list(_commands())
    ports = {port} if port else set()
    found = []
    for pid, program, options in running:
        if program == "flower-supernode" and _data_of(options) == data.resolve():
            ports.add(options.get("--port", _NODE_PORT))
            if options.get("--isolation") != "process":
                found.append(
                    bad("SuperNode", f"process {pid} is a {program} by itself, and {_REMEDY}")
                )
    for pid, program, options in running:
        address = options.get("--runtime-api-address", options.get("--appio-api-address", ""))
        if program == "flower-superexec" and address.rpartition(":")[2] in ports:
            found.append(
                bad("SuperExec", f"process {pid} is Flower's own {program}, and {_REMEDY}")
            )
    return found


def _commands() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Pid, name and options of Flower's programs that run on this machine."""
    for entry in sorted(_PROCESSES.glob("[0-9]*")):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            # A script's command line has the interpreter before it.
            for number, word in enumerate(words[:2]):
                if Path(word).name in ("flower-supernode", "flower-superexec"):
                    yield entry.name, Path(word).name, _options(words[number + 1 :])


def _options(words: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else after
    return found


def _data_of(options: Mapping[str, str]) -> Path | None:
    """The organisation folder that a SuperNode's options name."""
    try:
        named = parse_config_args([options["--node-config"]]).get("data-dir")
    except (KeyError, ValueError, TypeError):
        return None
    return Path(str(named)).resolve() if named else None
