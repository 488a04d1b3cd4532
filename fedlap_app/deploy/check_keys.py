"""`fedlap keys check`: expiry, names, permissions and fingerprints of a folder, one line each."""

from dataclasses import replace
from pathlib import Path

from fedlap_app.deploy.check_coordinator import check_coordinator
from fedlap_app.deploy.check_organisation import check_organisation
from fedlap_app.deploy.findings import Finding
from fedlap_app.errors import ConfigError
from fedlap_app.privacy.federation import FILE


def check_folder(folder: Path) -> list[Finding]:
    """Check the folder of a coordinator, of an organisation, or of a demonstration."""
    if (folder / "superlink").is_dir() or (folder / "ca").is_dir():
        return check_coordinator(folder)
    if (folder / "coordinator").is_dir() and (folder / "organisations").is_dir():
        found = check_coordinator(folder / "coordinator")
        for each in sorted((folder / "organisations").iterdir()):
            found += [
                replace(finding, what=f"{each.name}, {finding.what}")
                for finding in check_organisation(each)
            ]
        return found
    if (folder / "keys").is_dir() or (folder / FILE).is_file():
        return check_organisation(folder)
    raise ConfigError(
        f"{folder} holds neither an organisation's keys nor a coordinator's authority: name the "
        "folder that `fedlap keys` wrote"
    )
