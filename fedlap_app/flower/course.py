"""What every member makes of the opened sums by itself: the next model, the best one, the end.

All of it follows from the settings and from sums that all members have opened alike, so that they
stay in step without a word, and the server, which knows neither, only counts rounds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.first_model import begun_with
from fedlap_app.flower.steps import Step
from fedlap_app.methods import weighing
from fedlap_app.methods.base import Method, Schema
from fedlap_app.methods.base import State as Before
from fedlap_app.methods.scores import SPLITS, Best, Layout, Scores, best_of, summed, unpack
from fedlap_app.methods.step import MODEL, State, kept, pack_state, unpack_state
from fedlap_app.models.specs import BRANCH_WEIGHTS, FEATURE_WEIGHT, FEATURE_WEIGHTS
from fedlap_app.privacy.accounting import Promise
from fedlap_app.seeds import stage_seed
from fedlap_app.store import packing
from fedlap_app.store.packing import Data
from fedlap_app.sums.lanes import Lanes
from fedlap_app.sums.training.agreed import KEPT, Agreed, Turn
from fedlap_app.sums.training.job import RoundSum
from fedlap_app.sums.training.noise import NodeNoise, Noise
from fedlap_app.sums.training.shape import SumShape, Tensor

Model = Mapping[str, NDArray[np.float32]]
_FRESH: Model = MappingProxyType({})


@dataclass(frozen=True)
class Standing:
    """Where training stands, beside the state of the strategy.

    Attributes
    ----------
    best, kept
        Round and totals of the best model of this stage, and stage, round and totals of the best
        one of all stages that are over; none: no model was scored yet.
    rounds
        Rounds of this stage that were scored.
    over
        Whether the stage trains no more.
    counts
        Nodes of each split and how many of them the kept model classifies right, once the last
        sum of the stage says so; nothing of other members than the first stage was scored by.
    told
        Who those are: the difference of two lists would tell of whoever was left out between.
    """

    best: Mapping[str, Any] | None = None
    kept: Mapping[str, Any] | None = None
    rounds: int = 0
    over: bool = False
    counts: Mapping[str, Any] | None = None
    told: Sequence[str] = ()


class Taken(NamedTuple):
    """What a sum leads to.

    Attributes
    ----------
    standing, state
        Where training stands then.
    best
        The model that has become the best one of its stage; None: none has.
    kept
        Whether the best one of this stage has become the best of all.
    row
        What the sum says of the model of the round before, or of the kept one.
    """

    standing: Standing
    state: State
    best: Model | None
    kept: bool
    row: Mapping[str, Any]


class Course:
    """The course of a training with given settings.

    Parameters
    ----------
    method
        What is trained.
    schema
        Numbers of features and of classes.
    earlier
        Parameters that training begins with (default: fresh ones).
    """

    def __init__(self, method: Method, schema: Schema, earlier: Model = _FRESH) -> None:
        self.method, self.schema, self._earlier = method, schema, earlier
        self.step = Step(method)
        self.layout = Layout.of(method.settings, schema.classes)

    @cached_property
    def agreed(self) -> Agreed:
        """What all members of the job share."""
        settings = self.method.settings
        bits = settings.training_bits
        model = self.first(0)[MODEL]
        tensors = [Tensor(name, value.shape, bits) for name, value in model.items()]
        weighted = len(FEATURE_WEIGHTS) if FEATURE_WEIGHT in model else 1
        scores = weighted * self.layout.size + self.method.num_sums(model)
        return Agreed(
            run=settings.digest(),
            shape=SumShape((*tensors,), scores, Lanes(settings.training_ring)),
            stages=settings.self_training + 1,
            rounds=settings.rounds,
            largest_step=settings.largest_step,
            min_clients=settings.min_clients,
            noise=_noise(settings.promise),
            largest_weight=settings.largest_weight,
            backend=settings.training_backend,
        )

    def first(self, stage: int) -> State:
        """The state that a stage begins with."""
        seed = stage_seed(self.method.settings.seed, stage)
        fresh = self.method.start(self.schema, seed, {})
        return self.step.start(begun_with(fresh, self._earlier).model)

    def taken(self, turn: Turn, opened: RoundSum, standing: Standing, state: State) -> Taken:
        """Work out what follows from the sum of a turn, with the model that it was about."""
        model, totals = state[MODEL], opened.totals.tolist()
        end = len(totals) - self.method.num_sums(model)
        choices = summed(totals[:end], self.layout)
        rounds = self.method.settings.rounds
        if turn.number == rounds + KEPT:
            row = {"stage": turn.stage, "kept": True, **self._about_kept(standing)}
            packed = unpack(totals[: self.layout.size], self.layout)
            counts = {
                split: (round(packed[f"{split}-count"]), round(packed[f"{split}-correct"]))
                for split in SPLITS
            }
            told = standing.told or turn.members
            same = tuple(told) == turn.members
            standing = replace(standing, counts=counts if same else {}, told=told)
            return Taken(standing, state, None, kept=False, row=row)
        best: Model | None = None
        row = {}
        if turn.number > 1:
            standing, best, row = self._scored(turn, choices, standing, model)
        if turn.number > rounds:
            standing = replace(standing, over=True)
        if not standing.over:
            moved = self.step.after(state, opened.mean, turn.number)
            state = self._weighed(moved, model, totals[end:])
            return Taken(standing, state, best, kept=False, row=row)
        standing, kept = self._closed(turn.stage, standing)
        return Taken(standing, state, best, kept, row)

    def _weighed(self, state: State, before: Model, sums: Sequence[float]) -> State:
        """The state with what the method makes of its own sums."""
        after = self.method.weigh(Before(state[MODEL]), Before(before), sums)
        return {**state, MODEL: kept(after.model)}

    def _scored(
        self, turn: Turn, choices: Sequence[Scores], standing: Standing, model: Model
    ) -> tuple[Standing, Model | None, dict[str, Any]]:
        """Take in how the model after the round before has scored."""
        settings, number = self.method.settings, turn.number - 1
        chosen = best_of(choices, settings.metric)
        totals = choices[chosen]
        best = self._best(standing.best)
        found: Model | None = None
        if best.takes(number, totals):
            found = dict(model)
            if FEATURE_WEIGHT in model:
                weight = np.array([FEATURE_WEIGHTS[chosen]], dtype=np.float32)
                found = {**model, FEATURE_WEIGHT: weight}
        row = {"stage": turn.stage, "round": number, **totals}
        if BRANCH_WEIGHTS in model:
            row |= weighing.columns(model[BRANCH_WEIGHTS])
        if FEATURE_WEIGHT in model:
            row["feature_weight"] = FEATURE_WEIGHTS[chosen]
        facts = {"round": best.round, "totals": best.totals}
        after = replace(standing, best=facts, rounds=number, over=best.is_enough(number))
        return after, found, row

    def _closed(self, stage: int, standing: Standing) -> tuple[Standing, bool]:
        """The end of a stage: its best model is kept if it is ahead of that of earlier stages."""
        best = standing.best or {}
        ahead = standing.kept is None or self._best(best).is_ahead_of(self._best(standing.kept))
        kept = {"stage": stage, **best} if ahead else standing.kept
        return replace(standing, kept=kept), ahead

    def _about_kept(self, standing: Standing) -> dict[str, Any]:
        kept = standing.kept or {}
        best = {"best_stage": kept.get("stage"), "best_round": kept.get("round")}
        return {**best, "rounds": standing.rounds}

    def _best(self, facts: Mapping[str, Any] | None) -> Best:
        found, best = facts or {}, Best.of(self.method)
        best.round, best.totals = found.get("round", 0), found.get("totals")
        return best


def _noise(promise: Promise | None) -> Noise | None:
    """What every change gets of noise under the settings of a run."""
    if promise is None:
        return None
    kind = NodeNoise if promise.by_example else Noise
    return kind(promise.clip, promise.noise, promise.colluders)


def pack_standing(standing: Standing, state: State) -> bytes:
    """As bytes, the same for the same content."""
    return packing.pack(json.dumps(asdict(standing), sort_keys=True).encode(), pack_state(state))


def unpack_standing(data: Data) -> tuple[Standing, State]:
    """Read what `pack_standing` gave."""
    facts, state = packing.unpack(data, 2)
    try:
        return Standing(**json.loads(bytes(facts))), unpack_state(state)
    except (ValueError, TypeError):
        raise ProtocolError("The stored state of training is damaged; start a new run.") from None
