"""What organisations of a run kept in their stores: rows of the basis, models of their own."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.kept import training_job
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store import names, places
from fedlap_app.sums.job.bases import Bases, FinishedBasis

SAVED = "stores"


def roots_of(settings: Settings, run_folder: Path | None = None) -> list[Path]:
    """Folders that may hold the stores of a simulated run, the likeliest first."""
    found = []
    if run_folder is not None:
        # A saved run has them inside; a home has them beside the folder of its runs.
        found += [run_folder / SAVED, run_folder.absolute().parent.parent / "stores"]
    if settings.store_dir:
        found.append(Path(settings.store_dir).expanduser())
    return [*dict.fromkeys([*found, places.stores_dir()])]


def find_basis(stores: Iterable[Path], subgraph: Subgraph, job: str) -> FinishedBasis:
    """An organisation's rows of the basis of a job: nobody else has them."""
    looked = list(stores)
    for store in looked:
        with suppress(ProtocolError):
            return Bases(store / "basis").find(job, subgraph.fingerprint())
    raise DataError(
        f"the model reads a spectral basis that the store of {subgraph.name} does not hold "
        f"(looked in {' and '.join(map(str, looked))}): predict where the organisation took part, "
        "with the same data"
    )


def find_model(stores: Iterable[Path], name: str, run_id: int) -> ModelFile:
    """The model that an organisation kept of a run."""
    looked = list(stores)
    for store in looked:
        path = store / names.JOBS / training_job(run_id) / model_file.FILE
        if path.is_file():
            return read_model(path)
    raise DataError(
        f"the store of {name} holds no model of run {run_id} (looked in "
        f"{' and '.join(map(str, looked))}): an organisation keeps those of its newest few runs"
    )


def read_model(path: Path) -> ModelFile:
    """Read a model's file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}): name a run folder with a global model; a "
            "run with method local keeps its models at the organisations"
        ) from None
    return ModelFile.from_bytes(content, str(path))
