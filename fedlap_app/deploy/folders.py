"""Start commands: an organisation's from its own package, the coordinator's from the federation."""

import re
import shlex
import shutil
from pathlib import Path

import flwr

from fedlap_app.privacy.federation import FILE, Federation
from fedlap_app.version import VERSION

_TEMPLATES = Path(__file__).parent / "templates"
_HOME = "/srv/fedlap"
# For sed: the SuperLink's host and port in a federation file, if no other letters are in it.
_ADDRESS = r's/^address = "\([][A-Za-z0-9_.:-]*\)"$/\1/p'


def fill(template: str, **values: str) -> str:
    """A template with its `@names@` replaced; each must have a value."""
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    given = {key.replace("_", "-"): value for key, value in values.items()}
    return re.sub(r"@([a-z-]+)@", lambda found: given[found[1]], text)


def slug(name: str) -> str:
    """A name for units, containers and images: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "organisation"


def write_organisation_folder(folder: Path, federation: Federation, authority: bytes) -> None:
    """What the coordinator sends to an organisation: two files of data, nothing to execute."""
    shutil.rmtree(folder, ignore_errors=True)  # scripts of an older version, say
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(authority)
    _write(folder / FILE, federation.to_toml())


def start_commands(name: str) -> dict[str, str]:
    """Content of what starts an organisation's processes, by its path; it depends on no federation.

    All of it comes from the installed package. The federation file is read when a process starts.
    """
    unit = f"fedlap-{slug(name)}"
    units = {
        f"systemd/{unit}-{process}.service": _unit(name, process)
        for process in ("supernode", "superexec")
    }
    about = {"what": name.replace("%", "%%"), "folder": f"{_HOME}/{_unit_path(name)}"}
    for kind in ("service", "timer"):
        units[f"systemd/{unit}-predict.{kind}"] = fill(f"predict.{kind}", **about)
    compose = fill(
        "organisation-compose.yml",
        title=name,
        project=unit,
        flower=flwr.__version__,
        version=VERSION,
        address=_ADDRESS.replace("$", "$$"),
    )
    supervisor = fill("supervisor.sh")
    start = fill("organisation-start.sh", address=_ADDRESS, supervisor=supervisor)
    return {"start.sh": start, "compose.yml": compose, **units}


def write_start_commands(folder: Path, name: str, fingerprint: str) -> None:
    """Start commands of an organisation, in its own folder, and what they are for."""
    for file, content in start_commands(name).items():
        _write(folder / file, content, executable=file.endswith(".sh"))
    readme = fill(
        "organisation-readme.md",
        title=name,
        fingerprint=fingerprint,
        sed_name=re.sub(r"([\\.*^$\[\]|])", r"\\\1", _unit_path(name)),
        unit=f"fedlap-{slug(name)}",
    )
    _write(folder / "README.md", readme)


def write_superlink_folder(folder: Path, federation: Federation, authority: bytes) -> None:
    """Start commands of the coordinator; keys and certificates are there already."""
    keys = folder / "keys"
    keys.mkdir(parents=True, exist_ok=True, mode=0o755)
    (folder / "ca.crt").write_bytes(authority)
    _write(folder / FILE, federation.to_toml())
    for old in keys.glob("*.pub"):
        old.unlink()
    for member in federation.members:
        _write(keys / f"{member.name}.pub", f"{member.supernode_key}\n")
    host, port = federation.listen
    start = fill(
        "superlink-start.sh",
        listen_host=host,
        listen_port=str(port),
        own_address=shlex.quote(federation.own_address),
        supervisor=fill("supervisor.sh"),
    )
    _write(folder / "start.sh", start, executable=True)
    connection = fill("flwr.sh", own_address=federation.own_address)
    _write(folder / "flwr.sh", connection, executable=True)
    names = "\n".join(f"register {shlex.quote(member.name)}" for member in federation.members)
    _write(folder / "register.sh", fill("register.sh", members=names), executable=True)
    _write(folder / "unregister.sh", fill("unregister.sh"), executable=True)
    for process in ("superlink", "superexec"):
        _write(folder / "systemd" / f"fedlap-{process}.service", _unit("superlink", process))
    proxy = fill(
        "nginx.conf",
        folder=str(folder),
        port=str(federation.port),
        own_address=federation.own_address,
        listen_more=_listen_more(federation),
        # nginx takes no IPv6 address for a name; `_` stands for whatever is asked for.
        servers=" ".join(name for name in federation.servers if ":" not in name) or "_",
    )
    _write(folder / "nginx.conf", proxy)
    readme = fill(
        "superlink-readme.md",
        federation=federation.name,
        address=federation.address,
        count=str(len(federation.members)),
        own_address=federation.own_address,
        port=str(federation.port),
    )
    _write(folder / "README.md", readme)


def _listen_more(federation: Federation) -> str:
    """The proxy's line for IPv6; a machine without IPv6 would not start with it."""
    line = f"listen [::]:{federation.port} ssl;"
    if any(":" in name for name in federation.servers):
        return line
    return f"# {line}    # if the name has an IPv6 address too"


def _unit(name: str, process: str) -> str:
    return fill(
        "systemd.service",
        what=f"{process} of {name}".replace("%", "%%"),
        folder=f"{_HOME}/{_unit_path(name)}",
        process=process,
    )


def _unit_path(name: str) -> str:
    """A name inside a quoted word of a unit, where % and $ have meanings of their own."""
    return name.replace("%", "%%").replace("$", "$$")


def _write(path: Path, content: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    if executable:
        path.chmod(0o755)
