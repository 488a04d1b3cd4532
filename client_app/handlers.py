"""What an organisation does when the server asks; only those who train import torch."""

from flwr.app import ArrayRecord, ConfigRecord, RecordDict

import fedlap_app
from client_app.kept import keep_model
from client_app.organisation import Organisation
from client_app.records import Metrics, from_arrays, to_arrays, to_metrics
from fedlap_app.errors import ProtocolError
from fedlap_app.methods.scores import pack


def join(organisation: Organisation, content: RecordDict) -> RecordDict:
    """Name, version, settings and schema of the organisation."""
    subgraph = organisation.subgraph
    member = ConfigRecord(
        {
            "name": organisation.name,
            "version": fedlap_app.__version__,
            "settings": organisation.settings.digest(),
            "schema": organisation.schema,
            "num-classes": subgraph.num_classes,
            "num-features": subgraph.num_features,
            "num-examples": int(subgraph.train_mask.sum()),
        }
    )
    return RecordDict({"member": member})


def train(organisation: Organisation, content: RecordDict) -> RecordDict:
    """One round of federated averaging; the received model is scored on the way."""
    from fedlap_app.methods.fedavg import client_round
    from fedlap_app.methods.fedlap_plus import method_objective

    result = client_round(
        organisation.model,
        organisation.tensors_with(_basis(content)),
        organisation.settings.train_spec,
        from_arrays(_arrays(content)),
        name=organisation.name,
        number=_number(content, "server-round"),
        seed=organisation.settings.seed,
        objective=method_objective(organisation.settings),
    )
    metrics: Metrics = {
        "num-examples": result.report.num_examples,
        "train-loss": result.report.loss,
        "scores": pack(result.received),
    }
    return RecordDict({"arrays": to_arrays(result.parameters), "metrics": to_metrics(metrics)})


def train_alone(organisation: Organisation, content: RecordDict) -> RecordDict:
    """Train without any exchange; only counts and losses of each round leave."""
    from fedlap_app.methods.alone import train_alone as run_alone

    settings = organisation.settings
    result = run_alone(
        organisation.tensors,
        organisation.model_spec,
        settings.train_spec,
        name=organisation.name,
        rounds=settings.rounds,
        seed=settings.seed,
    )
    keep_model(organisation, _number(content, "run"), result.parameters, result.evaluation)
    metrics: Metrics = {
        "train-loss": result.train_losses,
        "history": [value for row in result.history for value in row],
        "scores": pack(result.evaluation),
    }
    return RecordDict({"metrics": to_metrics(metrics)})


def evaluate(organisation: Organisation, content: RecordDict) -> RecordDict:
    """Score the global model on the own data."""
    from fedlap_app.methods.fedavg import score

    parameters = from_arrays(_arrays(content))
    tensors = organisation.tensors_with(_basis(content))
    evaluation = score(organisation.model, tensors, parameters)
    return RecordDict({"metrics": to_metrics({"scores": pack(evaluation)})})


def keep(organisation: Organisation, content: RecordDict) -> RecordDict:
    """Score the final model and keep it, with the scores per class, in the store."""
    from fedlap_app.methods.fedavg import score

    parameters = from_arrays(_arrays(content))
    tensors = organisation.tensors_with(_basis(content))
    evaluation = score(organisation.model, tensors, parameters)
    keep_model(organisation, _number(content, "run"), parameters, evaluation, _basis(content))
    return RecordDict({"metrics": to_metrics({"scores": pack(evaluation)})})


def _arrays(content: RecordDict) -> ArrayRecord:
    record = content.get("arrays")
    if not isinstance(record, ArrayRecord):
        raise ProtocolError("the message carries no model: it was not made by this app's server")
    return record


def _number(content: RecordDict, key: str) -> int:
    record = content.get("config")
    value = record.get(key) if isinstance(record, ConfigRecord) else None
    if not isinstance(value, int):
        raise ProtocolError(f"the message carries no {key}: it was not made by this app's server")
    return value


def _basis(content: RecordDict) -> str:
    """Offline job whose basis the model reads; empty for methods without one."""
    record = content.get("config")
    return str(record.get("basis", "")) if isinstance(record, ConfigRecord) else ""
