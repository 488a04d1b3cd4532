"""Bring a run up to date with a graph that changed: its basis and its model as the start."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fedlap_app.api import stores
from fedlap_app.api.organisations import Organisations, named_by
from fedlap_app.api.run import Run, open_run
from fedlap_app.api.training import conduct
from fedlap_app.api.workplace import quietly
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.flower.server.observer import Observer
from fedlap_app.graphs.snapshot import Changes
from fedlap_app.knobs import build, key_of
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import places

KEEP_BELOW = 0.05
"""Share of changes up to which an old basis with extended rows is as good as a new one."""

WORSE = 0.01
"""How much less a kept basis may validate than the earlier run did."""


@dataclass(frozen=True)
class Updated:
    """What an update did.

    Attributes
    ----------
    run : the new run; None: too little changed.
    changes : of every organisation since the earlier run.
    how : "kept" (the old basis), "warm" (a basis from the old one), "cold" or "unchanged".
    """

    run: Run | None
    changes: Mapping[str, Changes]
    how: str

    @property
    def share(self) -> float:
        """The largest share of changes of an organisation."""
        return max((each.share for each in self.changes.values()), default=0.0)


def update(
    run: Run | str | os.PathLike[str],
    orgs: Organisations | None = None,
    *,
    if_changed: float = 0.0,
    keep_below: float = KEEP_BELOW,
    exchange: bool = False,
    cold: bool = False,
    observer: Observer | None = None,
    **settings: object,
) -> Updated:
    """Train again on what the organisations hold now.

    The old basis is kept where little changed since it was computed, with rows for new nodes from
    their neighbours'; a kept basis that validates worse than the earlier run did is computed anew.
    Else the iteration starts from the old basis, and the result is turned to it. Training starts
    from the old model. An organisation that joined gets rows to start from by a sealed sum over its
    nodes' foreign neighbours; where training is sealed, it has no old model, and all begin with a
    fresh one.

    Parameters
    ----------
    run
        The run, or its folder.
    orgs
        Who takes part, with what they hold now (default: what the run's settings name).
    if_changed
        Do nothing unless more than this share of an organisation's graph changed.
    keep_below
        Largest share of changes with which the old basis is kept.
    exchange
        Rows of new nodes come from a sealed sum over all their neighbours, where an organisation
        finds them in its own rows otherwise.
    cold
        Compute basis and model without the earlier ones, for instance after an organisation left.
    observer
        Is told of every round.
    settings
        Settings that differ from those of the run, with underscores.
    """
    before = run if isinstance(run, Run) else open_run(run)
    _require_possible(before)
    now = orgs or named_by(before.settings)
    known, changes, drifts = _compared(before, now)
    earlier, names = set(before.summary["client_accuracy"]), {part.name for part in now}
    joined, left = names - earlier, earlier - names
    lost = sorted(names - joined - set(changes))
    if lost and not cold:
        raise DataError(
            f"the store of {lost[0]} has lost its basis of the earlier run: update with cold"
        )
    share = max((each.share for each in changes.values()), default=1.0)
    if not joined and not left and not cold and share <= if_changed:
        return Updated(None, changes, "unchanged")
    aged = max((changes[name].share + drift for name, drift in drifts.items()), default=1.0)
    config = {key_of(name): value for name, value in settings.items()}
    config |= {"store-dir": str(known), "start-basis": "", "start-model": ""}
    config |= {"keep-basis": False, "exchange-rows": False}
    chosen = build(Settings, {**before.settings.to_config(), **now.facts, **config})
    where = before.place.folder if before.place is not None else places.home()
    with quietly(), places.home_at(where):
        if cold:
            return Updated(_trained(before, chosen, now, observer), changes, "cold")
        start = {"start_basis": before.offline["job"], "start_model": str(_named(before))}
        if joined and chosen.sealed:  # whose members alone have the model, but not who joined
            del start["start_model"]
        warm = replace(chosen, **start, exchange_rows=exchange or bool(joined))
        if aged <= keep_below and not left and not joined:
            kept = _trained(before, replace(warm, keep_basis=True), now, observer)
            if not _validates_worse(kept, before):
                return Updated(kept, changes, "kept")
        return Updated(_trained(before, warm, now, observer), changes, "warm")


def settings_elsewhere(
    run: Run,
    *,
    keep: bool = False,
    exchange: bool = False,
    joined: bool = False,
    cold: bool = False,
) -> dict[str, object]:
    """Settings that bring a run up to date where its organisations are, as they differ from usual.

    Parameters
    ----------
    run
        The earlier run.
    keep
        Keep its basis, with rows for new nodes from their neighbours.
    exchange
        Rows of new nodes come from a sealed sum.
    joined
        So do those of an organisation that joined; as it has no model of a sealed training, all
        start with a fresh one.
    cold
        Start from neither its basis nor its model.
    """
    if cold and (keep or exchange or joined):
        raise ConfigError(
            "an update that starts from nothing keeps no basis and sums no old rows: leave cold or "
            "the other out"
        )
    _require_possible(run)
    usual = Settings().to_config()
    values = {
        key: value for key, value in run.settings.to_config().items() if value != usual.get(key)
    }
    for key in ("start-basis", "start-model", "keep-basis", "exchange-rows", "clients"):
        values.pop(key, None)
    if cold:
        return {**values, "refresh-basis": True}
    start = {"start-basis": str(run.offline["job"]), "start-model": str(_named(run))}
    if joined and run.settings.sealed:
        del start["start-model"]
    choices = {"keep-basis": keep, "exchange-rows": exchange or joined}
    return {**values, **start, **{key: True for key, chosen in choices.items() if chosen}}


def _named(run: Run) -> Path:
    """The run by its folder; for organisations, which keep the model themselves, by its number."""
    folder = run.folder.absolute()
    return folder.with_name(f"run-{run.summary['run_id']}") if run.settings.sealed else folder


def _require_possible(run: Run) -> None:
    kind = method_class(run.settings.method)
    if not run.offline or not kind.exchanges or kind.own_models:
        raise ConfigError(
            f"a run with method = '{run.settings.method}' has no basis and global model to start "
            "from: train again"
        )


def _compared(run: Run, orgs: Organisations) -> tuple[Path, dict[str, Changes], dict[str, float]]:
    """Where the stores are, what changed at every organisation, and what had before."""
    for root in stores.roots_of(run.settings, run.folder):
        changes, drifts = {}, {}
        for part in orgs:
            with suppress(DataError):
                basis = run.kept_by(part, [root / part.name]).basis
                if basis is not None and basis.graph is not None:
                    changes[part.name] = basis.graph.changes(part)
                    drifts[part.name] = basis.facts.drift
        if changes:
            return root, changes, drifts
    raise DataError(
        f"no store holds a basis of the run in {run.folder}: update where the organisations are"
    )


def _trained(before: Run, settings: Settings, orgs: Organisations, watch: Observer | None) -> Run:
    run = conduct(settings, watch, orgs=orgs)
    run.place = before.place
    return run


def _validates_worse(run: Run, before: Run) -> bool:
    new, old = run.score["val"], before.score["val"]
    return new is not None and old is not None and new < old - WORSE
