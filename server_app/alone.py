"""The method `local`: every organisation trains alone, and only counts and losses come back."""

from collections.abc import Mapping, Sequence

from flwr.app import ConfigRecord, MetricRecord, RecordDict

from client_app.records import numbers
from fedlap_app.methods.scores import total
from fedlap_app.settings import Settings
from server_app.member_grid import Member, MemberGrid
from server_app.observer import Observer
from server_app.outcome import Outcome
from server_app.run_folder import RunFolder


def run_local(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    folder: RunFolder,
    observer: Observer,
) -> Outcome:
    """Ask every member once; each keeps its own best validation round."""
    content = RecordDict({"config": ConfigRecord({"run": grid.run.run_id})})
    replies = grid.ask(members, "train.alone", content, settings.step_timeout)
    series = [reply.metric_records["series"] for reply in replies]
    for number in range(settings.rounds):
        totals = _totals(series, number)
        folder.add_round({"round": number + 1, **totals})
        observer.round_done(number + 1, settings.rounds, totals)
    return Outcome(
        best_round=None,
        rounds=settings.rounds,
        clients={
            member.name: numbers(reply, "best")
            for member, reply in zip(members, replies, strict=True)
        },
        parameters=None,
    )


def _totals(series: Sequence[MetricRecord], number: int) -> Mapping[str, float]:
    rows = [{key: values[number] for key, values in record.items()} for record in series]  # type: ignore[index]
    return total(rows)
