"""How much a training run may ask: one model a round, rounds that only move forward.

A run is bound to the settings that it joined with. In each stage it may have one model scored after
the rounds and one kept. What was asked last is in the store before the answer leaves, so that the
same message may come again and another one in its place may not. This limits how fast models read
out the data, and no more.
"""

import json
import logging
import re

from flwr.app import ArrayRecord, RecordDict

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.client.runs import Runs
from fedlap_app.flower.client.training_ledger import is_last
from fedlap_app.flower.records import digest_of
from fedlap_app.flower.task import task_of
from fedlap_app.methods.base import Method
from fedlap_app.methods.kept import RATION, training_job
from fedlap_app.methods.organisation import Organisation
from fedlap_app.methods.registry import digest_of as digest_of_method
from fedlap_app.methods.registry import is_built_in
from fedlap_app.methods.task import Late, Task
from fedlap_app.privacy.policy import Policy
from fedlap_app.store.rewritten import RewrittenFile

_log = logging.getLogger("fedlap")
_MOST_RECORDS = 4
_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_JOB = re.compile(r"[0-9A-Za-z]{1,64}")
_LATE: dict[int, str] = {Late.EVALUATE: "the scoring", Late.KEEP: "the keeping"}


def join(organisation: Organisation, run: int) -> None:
    """Bind a run to its settings, if the organisation's policy allows them."""
    _require_allowed(organisation.policy, organisation.method)
    if organisation.deployed:
        _say_what_is_weaker(organisation, run)
    with organisation.store.lock():
        runs = Runs(organisation)
        began = _record(organisation, run).read() or {"settings": runs.settings_of(run)}
        if began["settings"] is not None:
            _require_same(organisation, run, began["settings"])
        runs.join(run)


def admit(
    organisation: Organisation, run: int, content: RecordDict, number: int, *, alone: bool = False
) -> Task:
    """Enter a message, before it is answered, that the run may send now.

    Parameters
    ----------
    organisation, run
        Who is asked, and the run that the message came in.
    content, number
        The message, and its round or which `Late` message it is.
    alone : bool (default: False)
        Whether it asks for training without exchange.

    Returns
    -------
    Task
        What the message is about.
    """
    task, method = task_of(content), organisation.method
    if task.run != run:
        raise ProtocolError(
            f"the message is about run {task.run} and came in run {run}: it was not made by this "
            "app's server"
        )
    _require_short(content, task, method)
    _require_allowed(organisation.policy, method)
    _require_planned(method, task, number, alone=alone)
    step, asked = task.step(number), digest_of(content)
    with organisation.store.lock():
        record = _record(organisation, run)
        known = record.read()
        if known is None:
            known = _begin(organisation, run)
        _require_same(organisation, run, known["settings"])
        last = int(known["step"])
        if step == last and asked == known["asked"]:
            return task
        _require_next(task, number, last, alone=alone)
        known = {
            "settings": organisation.agreed,
            "step": step,
            "asked": asked,
            "finished": is_last(method, task, number),
        }
        record.write(json.dumps(known))
    return task


def admit_sealed(organisation: Organisation, run: int, task: Task) -> None:
    """Let a message of sealed training in, if the run may train; its job knows what comes next."""
    if task.run != run:
        raise ProtocolError(
            f"the message is about run {task.run} and came in run {run}: it was not made by this "
            "app's server"
        )
    method = organisation.method
    _require_allowed(organisation.policy, method)
    if not method.settings.sealed or not method.exchanges:
        raise ProtocolError(
            f"training-backend = '{method.settings.training_backend}' and method = "
            f"'{method.name}' have no sealed rounds: the message was not made by this app's server"
        )
    with organisation.store.lock():
        record = _record(organisation, run)
        known = record.read()
        if known is None:
            known = {**_begin(organisation, run), "finished": False}
            record.write(json.dumps(known))
        _require_same(organisation, run, known["settings"])


def finish(organisation: Organisation, run: int) -> None:
    """Note that a sealed training is over."""
    record = _record(organisation, run)
    record.write(json.dumps({**(record.read() or {}), "finished": True}))


def _record(organisation: Organisation, run: int) -> RewrittenFile:
    path = organisation.store.job(training_job(run)).path / RATION
    return RewrittenFile(path, durable=organisation.deployed)


def _begin(organisation: Organisation, run: int) -> dict[str, str | int]:
    """The state of a run before its first message."""
    runs = Runs(organisation)
    joined = runs.settings_of(run)
    if joined is None:
        raise RunError(f"run {run} asks to train and did not join before: start a new run")
    _require_same(organisation, run, joined)
    runs.begin()
    return {"settings": joined, "step": -1, "asked": ""}


def _require_same(organisation: Organisation, run: int, digest: object) -> None:
    if digest != organisation.agreed:
        raise RunError(
            f"run {run} joined with other settings than it has now: settings stay the same within "
            "a run, start a new one"
        )


def _require_next(task: Task, number: int, last: int, *, alone: bool) -> None:
    """Refuse a message that is not after the last one, or scores a stage that it was not in."""
    what = _LATE.get(number, f"round {number}")
    if task.step(number) <= last:
        raise RunError(
            f"it was asked for {what} of stage {task.stage} or for what follows before, with "
            "another model: it answers one model a round and no earlier round, start a new run"
        )
    if number in _LATE and not alone and last < task.step(1):
        raise RunError(
            f"it took part in no round of stage {task.stage} of this run, so it scores no model "
            "of it"
        )


def _require_planned(method: Method, task: Task, number: int, *, alone: bool) -> None:
    """Refuse what the settings of the run do not plan."""
    settings = method.settings
    if settings.sealed and not alone:
        raise ProtocolError(
            f"training-backend = '{settings.training_backend}' seals every round, and this message "
            "asks for one that is not sealed: it was not made by this app's server"
        )
    if alone == method.exchanges:
        raise ProtocolError(
            f"method = '{method.name}' asks for no such training: the message was not made by "
            "this app's server"
        )
    # What a message says is a round, whatever its number: the handlers alone name late ones.
    planned = isinstance(number, Late) or 1 <= number <= settings.rounds
    stages = 0 if alone else settings.self_training  # who trains alone goes through all at once
    if not planned or not 0 <= task.stage <= stages:
        raise ProtocolError(
            f"round {number} of stage {task.stage} is beyond rounds = {settings.rounds} or "
            f"self-training = {settings.self_training} of this run: start a new run"
        )


def _say_what_is_weaker(organisation: Organisation, run: int) -> None:
    """A line in the organisation's own log for whatever its policy allows beyond the defaults."""
    policy, method = organisation.policy, organisation.method
    shown = {
        "the server sees single gradients (server-steps)": method.single_gradients,
        "the server sees histograms of its labels (score-histograms)": method.settings.score_bins,
        "its policy allows more than the defaults in " + ", ".join(policy.weaker): policy.weaker,
    }
    for what, applies in shown.items():
        if applies:
            _log.warning("%s, run %s: %s", organisation.name, run, what)


def _require_short(content: RecordDict, task: Task, method: Method) -> None:
    """Refuse names and jobs that no server of this app sends: the store would hold them."""
    names = [name for name, record in content.items() if isinstance(record, ArrayRecord)]
    jobs_fit = all(map(_JOB.fullmatch, task.found.values()))
    if not jobs_fit or not task.found.keys() <= {*method.settings.possible_programs}:
        raise ProtocolError(
            "the message names jobs that no run of these settings has: it was not made by this "
            "app's server"
        )
    if len(names) > _MOST_RECORDS or not all(map(_NAME.fullmatch, names)):
        raise ProtocolError(
            f"the message has {len(names)} records of arrays, where {_MOST_RECORDS} with names of "
            "a few letters are the most: it was not made by this app's server"
        )


def _require_allowed(policy: Policy, method: Method) -> None:
    """Refuse a run whose method or settings pass a limit of the policy."""
    _require_listed(policy, method)
    settings = method.settings
    backends = policy.training_backends
    if method.exchanges and backends is not None and settings.training_backend not in backends:
        what = "is not" if settings.sealed else "shows the server every update and score and is not"
        raise RunError(
            f"training-backend = '{settings.training_backend}' {what} what its policy allows "
            f"(training-backends): set training-backend = '{backends[0]}', or ask it to allow it"
        )
    if settings.publish_model and not policy.publish_model:
        raise RunError(
            "publish-model = true gives the trained model to the server, and its policy does not "
            "allow it (publish-model): leave publish-model out, or ask it to allow it"
        )
    patience = policy.least_straggler_timeout
    if method.exchanges and settings.min_clients and settings.straggler_timeout < patience:
        raise RunError(
            f"straggler-timeout = {settings.straggler_timeout:g} goes on soon without whoever is "
            f"late, and its policy asks for {patience} s (least-straggler-timeout): set "
            f"straggler-timeout = {patience} or more"
        )
    shown = settings.score_bins and not settings.sealed
    if shown and not policy.score_histograms:
        raise RunError(
            f"metric = '{settings.metric}' shows the server histograms of predicted probabilities "
            "by class, which tell labels, and its policy does not allow it (score-histograms): "
            "take metric = 'macro-f1' or 'accuracy', or ask it to allow them"
        )
    if method.single_gradients and not policy.server_steps:
        raise RunError(
            "optimizer-at = 'server', or one epoch of sgd, shows the server single gradients, "
            "which its policy does not allow (server-steps): set optimizer-at = 'client' and "
            "optimizer = 'adam'"
        )
    stages = settings.self_training + 1
    questions = 2 * stages if method.exchanges else 0
    for what, count, key, most in (
        ("training rounds", settings.rounds * stages, "most-rounds", policy.most_rounds),
        ("stages of self-training", settings.self_training, "most-stages", policy.most_stages),
        ("evaluations", questions, "most-evaluations", policy.most_evaluations),
    ):
        if most is not None and count > most:
            raise RunError(
                f"the run plans {count} {what} and its policy allows {most} ({key}): set fewer "
                "rounds or a smaller self-training"
            )


def _require_listed(policy: Policy, method: Method) -> None:
    """Refuse a method from outside that the policy does not list with its hash."""
    if policy.methods is None or is_built_in(method.name):
        return
    found = digest_of_method(type(method))
    if policy.methods.get(method.name) != found:
        raise RunError(
            f"method '{method.name}' does not come with the app and its policy does not list it "
            f"as it is installed there: look at its code, since a method decides what leaves, then "
            f'write `methods = {{"{method.name}" = "{found}"}}` into [policy] of org.toml there'
        )
