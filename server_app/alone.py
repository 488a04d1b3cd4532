"""The method `local`: every organisation trains alone, and only counts and losses come back."""

from collections.abc import Sequence

from flwr.app import ConfigRecord, RecordDict

from client_app.records import numbers
from fedlap_app.methods.scores import total, unpack
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
    basis: str,
) -> Outcome:
    """Ask every member once; each keeps its own best validation round and ignores the basis."""
    content = RecordDict({"config": ConfigRecord({"run": grid.run.run_id})})
    replies = grid.ask(members, "train.alone", content, settings.step_timeout)
    histories = [numbers(reply, "history") for reply in replies]
    width = len(numbers(replies[0], "scores"))
    for start in range(0, settings.rounds * width, width):
        row = total([unpack(history[start : start + width]) for history in histories])
        number = start // width + 1
        folder.add_round({"round": number, **row})
        observer.round_done(number, settings.rounds, row)
    return Outcome(
        best_round=None,
        rounds=settings.rounds,
        clients={
            member.name: unpack(numbers(reply, "scores"))
            for member, reply in zip(members, replies, strict=True)
        },
        parameters=None,
    )
