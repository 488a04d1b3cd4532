"""Sealed training at an organisation: open the last sum, train, seal the part of the next one.

No message holds a model: every organisation works out the same one from the sums that it opens.
"""

import logging
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from flwr.app import RecordDict

from fedlap_app.errors import ConsentError, ProtocolError, RunError
from fedlap_app.flower.asked import PUBLISH, TURN, WEIGH, WHERE, Answer, Asked
from fedlap_app.flower.client import ration, training_ledger
from fedlap_app.flower.client.moments import StoredMoments
from fedlap_app.flower.client.offline import secrets_of, use_own_processes
from fedlap_app.flower.client.training_state import TrainingState
from fedlap_app.methods import base
from fedlap_app.methods.base import MODEL
from fedlap_app.methods.fedavg import scored
from fedlap_app.methods.kept import keep_guesses, keep_model
from fedlap_app.methods.organisation import Organisation
from fedlap_app.methods.scores import addable, pack, pack_all
from fedlap_app.methods.task import Task
from fedlap_app.sums.training.agreed import KEPT, LAST, Turn
from fedlap_app.sums.training.chance import round_seed
from fedlap_app.sums.training.shape import Named

_log = logging.getLogger("fedlap")
_states: "WeakKeyDictionary[Organisation, TrainingState]" = WeakKeyDictionary()


def step(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Answer one message of sealed training."""
    asked = Asked.read(content)
    ration.admit_sealed(organisation, run, asked.task)
    use_own_processes(organisation.settings)
    handle = {WHERE: _where, WEIGH: _weigh, TURN: _turn, PUBLISH: _publish}[asked.kind]
    try:
        return handle(organisation, asked).record()
    except ConsentError as error:
        _log.warning("%s, run %s: refused by its policy: %s", organisation.name, run, error)
        raise


def _state(organisation: Organisation, asked: Asked) -> TrainingState:
    """The job as the store has it; it stays in memory as long as nobody else writes there.

    Whoever has let go of the store's lock looks again: another process may have gone on meanwhile.
    """
    found = _states.get(organisation)
    if found is None or not found.is_of(asked.job, asked.task):
        found = TrainingState(organisation, asked.job, asked.task)
        _states[organisation] = found
    return found


def _where(organisation: Organisation, asked: Asked) -> Answer:
    """Where this member is, for a server that goes on with a job."""
    with organisation.store.lock():
        state = _state(organisation, asked)
    job = state.job
    facts: dict[str, Any] = {"home": state.home.run}
    if (settled := job.settled) is not None:
        facts |= {"stage": settled.stage, "number": settled.number}
    if (listed := job.listed) is not None:
        facts |= {"attempt": listed.number, "members": list(listed.members)}
    return Answer(facts=facts)


def _weigh(organisation: Organisation, asked: Asked) -> Answer:
    """The sealed weight for a member list; a new stage begins with it."""
    with organisation.store.lock():
        state = _state(organisation, asked)
        state.take(asked)
        turn = asked.turn
        state.begin(turn.stage)
        if organisation.name not in turn.members:
            return Answer(mark=state.job.mark)
        weight = _weight(organisation)
        body = state.job.weigh(turn.attempt, turn.members, weight)
        training_ledger.enter_sealed(organisation, state.home, turn, state.job)
        return Answer(body, state.job.mark)


def _turn(organisation: Organisation, asked: Asked) -> Answer:
    """Take in what came, then seal the own part of the turn."""
    turn, rounds = asked.turn, organisation.settings.rounds
    is_listed = organisation.name in turn.members
    with organisation.store.lock():
        state = _state(organisation, asked)
        state.take(asked)
        if not is_listed:  # who was left out may have missed how the stage began
            state.begin(turn.stage)
        mark = state.job.mark
        if is_listed:
            if asked.weights:
                state.job.take_weights(asked.weights)
            if (reply := state.job.stored(turn)) is not None:
                return Answer(reply, mark)
        if state.standing.over and turn.number <= rounds + LAST:
            return Answer(mark=mark, facts={"over": True})
    if not is_listed and turn.number != rounds + KEPT:
        return Answer(mark=mark)
    trained: Named = {}
    if turn.number <= rounds:
        trained, scores = _trained(organisation, state, turn)
    elif turn.number == rounds + LAST:
        scores = _scored(organisation, state)
    else:
        scores = _kept(organisation, state, turn, asked.task)
    if not is_listed:
        return Answer(mark=mark)
    with organisation.store.lock():
        state = _state(organisation, asked)
        if state.job.mark != mark:
            raise ProtocolError(
                f"Round {turn.number} of stage {turn.stage} was asked for twice at once, and what "
                "followed it has begun; go on from there."
            )
        if turn.number <= rounds:
            training_ledger.count_noise(organisation)
        # What another process has sealed by now comes first.
        body = state.job.seal(turn, trained, scores, state.model)
        training_ledger.enter_sealed(organisation, state.home, turn, state.job)
    return Answer(body, mark)


def _weight(organisation: Organisation) -> float:
    """What the own change counts by; where the noise hides organisations, all count alike."""
    promise = organisation.settings.promise
    if promise and not promise.by_example:
        return 1.0
    return float(organisation.method.weight(organisation))


def _publish(organisation: Organisation, asked: Asked) -> Answer:
    """Take in the scores of the kept model; tell what may be told of them."""
    with organisation.store.lock():
        if last_words := TrainingState.last_words(organisation, asked.job):
            return Answer(last_words)
        state = _state(organisation, asked)
        state.take(asked)
        body = state.released()
        last = asked.turn.stage == organisation.settings.self_training
        training_ledger.enter_sealed(
            organisation, state.home, asked.turn, state.job, published=body, last=last
        )
        if last:
            ration.finish(organisation, asked.task.run)
            state.finish(body)
            _states.pop(organisation, None)
    return Answer(body)


def _trained(
    organisation: Organisation, state: TrainingState, turn: Turn
) -> tuple[Named, list[float]]:
    """The trained model, and the scores of the one before."""
    method, received = organisation.method, state.model
    task = replace(state.home, stage=turn.stage)
    moments = None
    if method.settings.optimizer_state == "keep" and not method.server_steps:
        moments = StoredMoments(organisation.store, task)
    before = moments.read(turn.number) if moments else None
    here = base.Turn(task, turn.number, before, _seed(organisation, turn))
    update = method.train(organisation, {MODEL: received}, here)
    if moments:
        moments.write(turn.number, update.moments)
    listed = state.job.listed
    promise = organisation.settings.promise
    weight = 1.0 if promise and not promise.by_example else update.weight
    if set(update.records) != {MODEL} or listed is None or weight != listed.weight:
        raise RunError(
            f"method '{method.name}' sends more than a model, or weights that change with the "
            "round, which no sealed sum holds: set training-backend = 'plain', which the policy "
            "of every organisation must allow (training-backends)"
        )
    return update.records[MODEL], [
        *addable(pack_all(update.scores), state.course.layout),
        *update.sums,
    ]


def _seed(organisation: Organisation, turn: Turn) -> int | None:
    """What dropout follows from: in a deployment the organisation's own secret."""
    if not organisation.deployed:
        return None
    secret = secrets_of(organisation).organisation
    return round_seed(secret, organisation.agreed, turn.stage, turn.number)


def _scored(organisation: Organisation, state: TrainingState) -> list[float]:
    """Scores of the model that the last round left."""
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.parameters import load_parameters

    settings = organisation.settings
    with one_thread():
        inputs = organisation.inputs(replace(state.home, stage=state.stage))
        received = organisation.method.received(organisation, {MODEL: state.model})
        load_parameters(organisation.model, received)
        found, sums = scored(organisation.model, inputs, bins=settings.score_bins)
    return [*addable(pack_all(found), state.course.layout), *sums]


def _kept(organisation: Organisation, state: TrainingState, turn: Turn, task: Task) -> list[float]:
    """Keep the best model, and guesses for the stage that follows; its scores."""
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.evaluation import log_probabilities_of, score
    from fedlap_app.models.guesses import guess
    from fedlap_app.models.parameters import load_parameters

    method, settings = organisation.method, organisation.settings
    home = replace(state.home, stage=turn.stage)
    parameters = state.kept_model()
    with one_thread():
        inputs = organisation.inputs(home)
        received = method.received(organisation, {MODEL: parameters})
        load_parameters(organisation.model, received)
        predicted = log_probabilities_of(organisation.model, inputs)
    evaluation = score(predicted, inputs, bins=settings.score_bins)
    keep_model(organisation, task, method.kept(organisation, parameters), evaluation)
    if turn.stage < settings.self_training:
        guesses = guess(predicted, inputs.splits["train"], settings.guess_spec)
        keep_guesses(organisation.store, replace(home, stage=turn.stage + 1), guesses)
    packed = pack(evaluation)
    classes = organisation.subgraph.num_classes
    state.note({"stage": turn.stage, "classes": classes, "own": packed})
    scores = addable(packed, state.course.layout)
    if len(scores) > state.job.agreed.shape.scores:
        raise ProtocolError("The scores of the kept model do not fit the sum.")
    return scores + [0.0] * (state.job.agreed.shape.scores - len(scores))
