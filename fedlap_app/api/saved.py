"""Which data a saved run is about: a benchmark or folders by name, what was in memory as files."""

import json
from dataclasses import replace
from pathlib import Path

from fedlap_app.api.organisations import MEMORY, Organisations, in_memory, named_by
from fedlap_app.errors import DataError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings

_DATA, _SEED = "data", "data.json"


def keep_data(organisations: Organisations, settings: Settings, target: Path) -> None:
    """Write down the data of a run, so that `data_of` finds it again.

    Parameters
    ----------
    organisations
        Who took part, with their data.
    settings
        Of the run.
    target
        The folder of the saved run.
    """
    seed = json.dumps({"seed": organisations.seed})
    (target / _SEED).write_text(seed + "\n", encoding="utf-8")
    if settings.data == MEMORY:
        (target / _DATA).mkdir(exist_ok=True)
        for number, part in enumerate(organisations):
            part.save(target / _DATA / f"{number:06d}.graph")


def data_of(folder: Path, settings: Settings) -> Organisations:
    """The organisations of a run that was opened.

    Parameters
    ----------
    folder, settings
        Where the run is, and its settings.
    """
    seed = settings.seed
    if (folder / _SEED).is_file():
        seed = RunFolder(folder).read_json(_SEED)["seed"]
    if settings.data == MEMORY:
        files = sorted((folder / _DATA).glob("*.graph"))
        if not files:
            raise DataError(f"{folder} does not hold the data of its run: save the run itself")
        return in_memory([Subgraph.load(file) for file in files], seed=seed)
    return named_by(replace(settings, seed=seed))
