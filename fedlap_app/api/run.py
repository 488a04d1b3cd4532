"""A finished run: scores, history, model, predictions, the basis; saved and opened again."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlap_app.api import saved, stores
from fedlap_app.api.organisations import Organisations, require_empty
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE, Method
from fedlap_app.methods.kept import GRAPH, training_job
from fedlap_app.methods.registry import method_class
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names, places
from fedlap_app.store.folders import Store
from fedlap_app.sums.job.bases import Bases, FinishedBasis
from fedlap_app.sums.programs import FeatureMoments, Krylov, find_program
from fedlap_app.sums.programs.feature_moments import Encodings, LearnedEncoding

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from fedlap_app.api.prediction import Prediction
    from fedlap_app.api.workplace import Workplace
    from fedlap_app.graphs.encoding import Encoding


class Basis(NamedTuple):
    """One organisation's share of the spectral basis.

    Attributes
    ----------
    U : (n, rank) its rows of the eigenvectors, in the order of its nodes.
    eigenvalues : (rank,) the same at every organisation.
    """

    U: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]


class Run:
    """What training gave; made by `train` and `open_run`.

    Attributes
    ----------
    folder : the run folder: config.json, summary.json, metrics.jsonl, model.npz.
    """

    def __init__(self, folder: Path, *, organisations: Organisations | None = None) -> None:
        self.folder = folder
        self.place: Workplace | None = None
        self._files = RunFolder(folder)
        self._organisations = organisations

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Everything that ``summary.json`` says: scores, bytes, seconds, versions."""
        return {**self._files.read_json(names.SUMMARY), "run_folder": str(self.folder)}

    @cached_property
    def settings(self) -> Settings:
        """All settings of the run."""
        return parse_settings(self._files.read_json(names.CONFIG))

    @property
    def accuracy(self) -> dict[str, float | None]:
        """Accuracy on "train", "val" and "test" over all organisations; None without nodes."""
        return dict(self.summary["accuracy"])

    @property
    def score(self) -> dict[str, float | None]:
        """The score that the run's ``metric`` names, on "train", "val" and "test"."""
        return dict(self.summary["score"])

    @property
    def scores(self) -> "pd.DataFrame":
        """Accuracy of every organisation (rows) on train, val and test (columns)."""
        import pandas as pd

        rows = self.summary["client_accuracy"]
        return pd.DataFrame.from_dict(rows, orient="index").astype(float)

    @cached_property
    def history(self) -> "pd.DataFrame":
        """A row a round: stage, round, and accuracy, loss and macro F1 on every split."""
        import pandas as pd

        return pd.DataFrame(self._files.read_rounds()).apply(pd.to_numeric)

    @cached_property
    def offline(self) -> dict[str, Any]:
        """Round trips, bytes and seconds of the phase before training; empty without one."""
        if not (self.folder / names.PRICE).exists():
            return {}
        found: dict[str, Any] = self._files.read_json(names.PRICE)
        return found

    @cached_property
    def organisations(self) -> Organisations:
        """Who took part, with their data."""
        return self._organisations or saved.data_of(self.folder, self.settings)

    @property
    def parameters(self) -> dict[str, NDArray[Any]]:
        """Parameters of the global model, by name."""
        return dict(self.model_file.parameters)

    @cached_property
    def model(self) -> "nn.Module":
        """The global model, a network with the parameters of the best round, on the CPU."""
        from fedlap_app.api.prediction import network_of

        return network_of(self.settings, self.model_file, self.organisations[0])

    def model_of(self, organisation: str) -> "nn.Module":
        """The model that one organisation predicts with.

        Parameters
        ----------
        organisation
            Its name. Only with the methods local and fedlap does it differ from `model`.
        """
        from fedlap_app.api.prediction import network_of

        part = self.organisations[organisation]
        return network_of(self.settings, self._model_file_of(part), part)

    def predict(
        self, organisation: str, data: "str | os.PathLike[str] | Subgraph | None" = None
    ) -> "pd.DataFrame":
        """Predict the class of every node of an organisation.

        Nodes that came after training get a row of the basis from their neighbours' rows, from
        what the organisation holds alone; nothing is sent.

        Parameters
        ----------
        organisation
            Its name.
        data
            Its folder or part as it is now (default: the organisation as this run has it).

        Returns
        -------
        DataFrame
            A row a node: ``id``, ``label`` (what the data says, or None), ``split``,
            ``predicted``, ``probability`` of that class, ``basis`` (whether the node's row of the
            basis was computed, extended from neighbours, or is none), ``confidence`` (the
            probability as validation nodes with such a row have it), and ``p_CLASS`` for every
            class. Its ``attrs["changes"]`` counts what changed since training, if the store tells.
        """
        import pandas as pd

        part = self._part(organisation, data)
        found, rows = self._predicted(part)
        names = np.array([*part.classes, None], dtype=object)
        probabilities = np.exp(found.log_probabilities[rows].astype(np.float64))
        masks = [part.train_mask, part.val_mask, part.test_mask]
        frame = {
            "id": part.ids,
            "label": names[part.labels],
            "split": np.select(masks, ["train", "val", "test"], default=""),
            "predicted": names[found.classes[rows]],
            "probability": found.probabilities[rows],
            "basis": found.origins[rows],
            "confidence": found.probabilities[rows],
        }
        columns = {f"p_{name}": probabilities[:, at] for at, name in enumerate(part.classes)}
        table = pd.DataFrame({**frame, **columns})
        if found.changes is not None:
            table.attrs["changes"] = asdict(found.changes)
        return table

    def _part(
        self, organisation: str, data: "str | os.PathLike[str] | Subgraph | None"
    ) -> Subgraph:
        """An organisation's part, as it was or as it is now."""
        part: Subgraph = self.organisations[organisation]
        if data is None:
            return part
        now = data
        if not isinstance(now, Subgraph):
            now = read_folder(places.path_of(now, "data"), directed=self.settings.directed)
        if now.name != organisation:
            raise DataError(f"the data given for {organisation!r} is that of {now.name!r}")
        stores.require_same_schema(now, part)
        return now

    def basis(self, organisation: str) -> Basis:
        """An organisation's rows of the eigenvectors, and the eigenvalues.

        Parameters
        ----------
        organisation
            Its name.
        """
        part = self.organisations[organisation]
        found = self._basis(part)
        if found.facts.data != part.fingerprint():
            raise DataError(
                f"the data of {organisation} changed since this basis was computed: predict with "
                "it, or train again"
            )
        return Basis(np.array(found.U), np.array(found.eigenvalues))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the run in a folder of its own, for `open_run` in another process.

        Data that came from a benchmark or from organisation folders is found there again; data
        that was only in memory is saved along.

        Parameters
        ----------
        path
            A folder that is empty or not there.
        """
        target = places.path_of(path, "path")
        require_empty(target)
        shutil.copytree(self.folder, target, dirs_exist_ok=True)
        saved.keep_data(self.organisations, self.settings, target)
        for part in self.organisations:
            store = target / stores.SAVED / part.name
            if self.offline:
                store.mkdir(parents=True, exist_ok=True)
                Bases(store / Krylov.kept_as).save(self._basis(part))
            encodings = self._encodings(part)
            if encodings is not None:
                store.mkdir(parents=True, exist_ok=True)
                Encodings(store / FeatureMoments.name).save(encodings)
            for name, sums in stores.find_sums(self._stores(part), part, self.settings).items():
                results = find_program(name, self.settings).results(store, durable=False)
                assert results is not None, "it was found where the program keeps it"
                store.mkdir(parents=True, exist_ok=True)
                results.save(sums)
            if not self._method.pooled:
                kept, job = (
                    self.kept_by(part),
                    Store(store).job(training_job(self.summary["run_id"])),
                )
                if kept.graph is not None:
                    job.write(GRAPH, kept.graph.pack())
                if kept.graph is not None or self._method.own_models:
                    job.write(model_file.FILE, kept.model.to_bytes())

    def report(
        self, path: str | os.PathLike[str] | None = None, *, organisation: str | None = None
    ) -> Path:
        """Write a page with figures, charts and verdicts, which needs no network; see `report`.

        Parameters
        ----------
        path
            File to write (default: report.html in the run folder).
        organisation
            Name of the organisation whose own report it is (default: the server's report).
        """
        from fedlap_app import report

        return report(self, path, organisation=organisation)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self._facts() == other._facts()

    __hash__ = None  # type: ignore[assignment]

    def _facts(self) -> tuple[Any, ...]:
        where = {"run_folder": ""}
        return self.settings, {**self.summary, **where}, self._files.read_rounds()

    def __reduce__(self) -> str:
        raise TypeError("a Run lives in its folder: save it, and open_run it in the other process")

    def __repr__(self) -> str:
        test = self.accuracy["test"]
        scored = "no test nodes" if test is None else f"test accuracy {100 * test:.2f} %"
        facts = self.summary
        return (
            f"Run({facts['method']} on {facts['dataset']}, {facts['clients']} organisations, "
            f"{facts['rounds']} {'round' if facts['rounds'] == 1 else 'rounds'}: {scored})"
        )

    @property
    def _method(self) -> type[Method]:
        return method_class(self.settings.method)

    @cached_property
    def model_file(self) -> ModelFile:
        """The global model as the run folder has it."""
        if not self._method.exchanges and self._method.own_models:
            raise ConfigError(
                f"with the method {self._method.name} every organisation has a model of its own: "
                "ask model_of(NAME) or predict(NAME)"
            )
        return stores.read_model(self.folder / model_file.FILE)

    def _model_file_of(self, part: Subgraph) -> ModelFile:
        if not self._method.own_models:
            return self.model_file
        return self.kept_by(part).model

    def kept_by(self, part: Subgraph, where: Sequence[Path] = ()) -> stores.Kept:
        """What an organisation predicts with.

        Parameters
        ----------
        part
            What it holds now.
        where
            Where its store may be (default: wherever stores of this run may be).
        """
        run_id, where = self.summary["run_id"], where or self._stores(part)
        if self._method.own_models:
            return stores.find_model(where, part, run_id)
        return stores.with_graph(self.model_file, where, part, run_id)

    def encoding_of(self, part: Subgraph, model: ModelFile) -> "Encoding | None":
        """How an organisation read its features for a model of this run."""
        return stores.find_encoding(self._stores(part), part.name, model)

    def _predicted(self, part: Subgraph) -> "tuple[Prediction, Any]":
        """Predictions, and which of them are the organisation's."""
        from fedlap_app.api.prediction import predict_part

        if self._method.pooled:
            known = list(self.organisations)
            parts = [part if other.name == part.name else other for other in known]
            at = [other.name for other in parts].index(part.name)
            start = sum(other.num_nodes for other in parts[:at])
            changed = part is not known[at]
            found = predict_part(join(parts), self.model_file) if changed else self._together
            return found, slice(start, start + part.num_nodes)
        kept = self.kept_by(part)
        encoding = self.encoding_of(part, kept.model)
        others = stores.find_sums(self._stores(part), part, self.settings)
        others[WHOLE] = list(self.organisations)
        found = predict_part(part, kept.model, kept.basis, kept.graph, encoding, others)
        return found, slice(None)

    @cached_property
    def _together(self) -> "Prediction":
        """Predictions of a model of the whole graph, in the order of the organisations."""
        from fedlap_app.api.prediction import predict_part

        return predict_part(join(list(self.organisations)), self.model_file)

    def _basis(self, part: Subgraph) -> FinishedBasis:
        if not self.offline:
            raise ConfigError(
                f"the method {self.settings.method} of this run computed no spectral basis: train "
                "with method fedlap+, or with spectral=True"
            )
        return stores.find_basis(self._stores(part), part, self.offline["job"])

    def _encodings(self, part: Subgraph) -> LearnedEncoding | None:
        """How an organisation reads its features, where the store of the run says it."""
        model = self._model_file_of(part)
        if not model.features:
            return None
        return stores.find_learned(self._stores(part), part.name, model.features)

    def _stores(self, part: Subgraph) -> list[Path]:
        return [root / part.name for root in stores.roots_of(self.settings, self.folder)]


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open a run that was saved, or a run folder of ``fedlap train`` and ``fedlap run``.

    Parameters
    ----------
    path
        The folder. Of a run of another machine it holds scores, history and the global model;
        what only the organisations have is looked for in their stores, and a sentence says so
        when it is not there.
    """
    folder = places.path_of(path, "path")
    files = RunFolder(folder)
    if not (folder / names.CONFIG).is_file():
        raise DataError(f"{folder} is no run folder: name one that Run.save or a run has written")
    if not files.finished:
        error = folder / names.ERROR
        why = files.read_json(error.name)["error"] if error.is_file() else "it was stopped, or runs"
        raise DataError(f"{folder} holds no finished run ({why}): run it again")
    return Run(folder)
