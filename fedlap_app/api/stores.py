"""What organisations of a run kept in their stores: rows of the basis, models of their own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.kept import GRAPH, training_job
from fedlap_app.methods.registry import method_class
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names, places
from fedlap_app.sums.job.bases import Bases, FinishedBasis
from fedlap_app.sums.programs import FeatureMoments, Krylov, find_program
from fedlap_app.sums.programs.feature_moments import Encodings, LearnedEncoding

SAVED = "stores"


@dataclass(frozen=True, eq=False)
class Kept:
    """What an organisation predicts with.

    Attributes
    ----------
    model : the model.
    basis : its rows of the basis that the model reads, if it reads one.
    graph : what its part was at training, if that is known.
    job : folder of its store that holds what it knows of the training, if it is there.
    """

    model: ModelFile
    basis: FinishedBasis | None = None
    graph: Snapshot | None = None
    job: Path | None = None


def roots_of(settings: Settings, run_folder: Path | None = None) -> list[Path]:
    """Folders that may hold the stores of a simulated run, the likeliest first."""
    found = []
    if run_folder is not None:
        # A saved run has them inside; a home has them beside the folder of its runs.
        found += [run_folder / SAVED, run_folder.absolute().parent.parent / "stores"]
    return [*dict.fromkeys([*found, places.stores_at(settings.store_dir), places.stores_dir()])]


def find_basis(stores: Iterable[Path], part: Subgraph, job: str, data: str = "") -> FinishedBasis:
    """An organisation's rows of the basis of a job: nobody else has them.

    Parameters
    ----------
    stores
        Where to look.
    part, job
        The organisation's part now, and the job.
    data
        Fingerprint of what it was then (default: not known; that of the part, or what has most
        of its nodes).
    """
    looked = list(stores)
    for store in looked:
        found = Bases(store / Krylov.kept_as).of_job(job, part, data)
        if found is not None:
            return found
    raise DataError(
        f"the model reads a spectral basis that the store of {part.name} does not hold for any of "
        f"its nodes (looked in {' and '.join(map(str, looked))}): predict where the organisation "
        "took part, with a model that was trained on this data"
    )


def find_sums(stores: Iterable[Path], subgraph: Subgraph, settings: Settings) -> dict[str, Any]:
    """What the programs of a method, but for the basis, left in an organisation's store."""
    looked, found = list(stores), dict[str, Any]()
    for name in method_class(settings.method).needs(settings):
        program = find_program(name, settings)
        kept = [program.results(store, durable=False) for store in looked if name != Krylov.name]
        known = [(each, facts) for each in kept if each is not None for facts in each.facts()]
        fitting = [(each, facts) for each, facts in known if facts.data == subgraph.fingerprint()]
        if fitting:
            results, facts = fitting[-1]
            found[name] = results.load(facts)
        elif kept and any(kept):
            raise DataError(
                f"the model reads {name} that the store of {subgraph.name} does not hold (looked "
                f"in {' and '.join(map(str, looked))}): predict where the organisation took part, "
                "with the same data"
            )
    return found


def find_encoding(stores: Iterable[Path], name: str, model: ModelFile) -> Encoding | None:
    """How an organisation read its features for a model; None: the model or its table says it."""
    if model.encoding or not model.features:
        return None
    return find_learned(stores, name, model.features).encoding


def find_learned(stores: Iterable[Path], name: str, job: str) -> LearnedEncoding:
    """What a job of moments left at an organisation, whatever its data are now."""
    looked = list(stores)
    for store in looked:
        found = Encodings(store / FeatureMoments.name).of_job(job)
        if found is not None:
            return found
    raise DataError(
        f"the model reads features by means and deviations that the store of {name} does not hold "
        f"(looked in {' and '.join(map(str, looked))}): predict where the organisation took part"
    )


def find_model(stores: Iterable[Path], part: Subgraph, run_id: int) -> Kept:
    """What an organisation kept of a run."""
    looked = list(stores)
    for store in looked:
        path = store / names.JOBS / training_job(run_id) / model_file.FILE
        if path.is_file():
            return kept_at(path, part)
    raise DataError(
        f"the store of {part.name} holds no model of run {run_id} (looked in "
        f"{' and '.join(map(str, looked))}): an organisation keeps those of its newest few runs"
    )


def kept_files(stores: Iterable[Path], name: str) -> list[Path]:
    """A file of all training runs that some stores hold, the newest at the end."""
    found = (path for store in stores for path in store.glob(f"{names.JOBS}/*/{name}"))
    kept = (path for path in found if path.parent.name in names.TRAINING)
    return sorted(kept, key=lambda path: path.stat().st_mtime_ns)


def newest_fitting(stores: Sequence[Path], part: Subgraph) -> Kept:
    """The newest model in some stores that was trained on the data of a part, or on what it was.

    Organisations of several simulations may have one name, and so one store.
    """
    refused: list[DataError] = []
    for path in reversed(kept_files(stores, model_file.FILE)):
        model = read_model(path)
        try:
            require_schema(part, model, str(path))
            kept = kept_at(path, part, model)
            _require_nodes(part, kept, path)
        except DataError as error:
            refused.append(error)
            continue
        return kept
    raise (
        refused[0]
        if refused
        else DataError(
            f"there is no model in the store of {part.name}: name the run folder with --run, for "
            "example --run ~/.fedlap/runs/NAME, or the folder of the stores with --store-dir"
        )
    )


def kept_at(path: Path, part: Subgraph, model: ModelFile | None = None) -> Kept:
    """A model in an organisation's store, with what it needs from there."""
    model = model or read_model(path)
    if model.basis:
        store = path.parents[2]
        basis = find_basis([store], part, model.basis, model.data)
        return Kept(model, basis, job=path.parent)
    graph = path.parent / GRAPH
    known = Snapshot.unpack(graph.read_bytes()) if graph.is_file() else None
    return Kept(model, graph=known, job=path.parent)


def _require_nodes(part: Subgraph, kept: Kept, path: Path) -> None:
    """Refuse a model that never saw any of the nodes."""
    graph = kept.basis.graph if kept.basis else kept.graph
    if graph is not None and not graph.shared(part):
        raise DataError(
            f"the model of {path} was trained on other data that is called {part.name} as well: "
            "name the run folder with --run"
        )


def with_graph(model: ModelFile, stores: Iterable[Path], part: Subgraph, run_id: int) -> Kept:
    """A model of the server, with what the organisation kept of the same run."""
    looked = list(stores)
    own = _own(looked, run_id)
    if model.basis:
        data = read_model(own).data if own is not None else ""
        basis = find_basis(looked, part, model.basis, data)
        return Kept(model, basis, job=own.parent if own else None)
    return replace(find_model(looked, part, run_id), model=model) if own else Kept(model)


def _own(stores: Iterable[Path], run_id: int) -> Path | None:
    """File of the model of a run that is in a store, if one is."""
    paths = (store / names.JOBS / training_job(run_id) / model_file.FILE for store in stores)
    return next((path for path in paths if path.is_file()), None)


def require_schema(part: Subgraph, model: ModelFile, origin: str) -> None:
    """Refuse a model of other classes or features."""
    if schema_digest(part) != model.schema:
        raise DataError(
            f"{part.name} has other classes or features than the model of {origin}: use the model "
            "of a run in which this organisation took part"
        )


def require_same_schema(part: Subgraph, other: Subgraph) -> None:
    """Refuse a part of other classes or features than it had."""
    if schema_digest(part) != schema_digest(other):
        raise DataError(
            f"{part.name} has other classes or features than it had in this run: give it the same"
        )


def require_own_rows(part: Subgraph, model: ModelFile, origin: str) -> None:
    """Refuse the server's model where every organisation has rows of its own."""
    kind = method_class(parse_settings(model.config).method)
    if kind.exchanges and kind.own_models and not model.data:
        raise DataError(
            f"{origin} holds no structure features for the nodes of {part.name}: leave --run out, "
            "since only the model in the organisation's own store has them"
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


def stores_of(part: Subgraph, roots: Iterable[Path], folder: Path | None) -> Iterator[Path]:
    """Where an organisation's store may be: in its own folder, or among those of simulations."""
    if folder is not None:
        yield places.own_store(folder)
    yield from (root / part.name for root in roots)
