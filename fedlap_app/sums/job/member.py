"""One organisation's side of the offline phase: a request in, a reply out, everything stored."""

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data, pack, text
from fedlap_app.sums.card import verify_cards
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.job import Job
from fedlap_app.sums.job.messages import (
    CARDS,
    DONE,
    HELLO,
    REUSE,
    HelloReply,
    Request,
    parts_after_hello,
)
from fedlap_app.sums.job.party import Party


class Member:
    """Answers requests; the caller holds the lock of the organisation's store.

    Parameters
    ----------
    party
        The organisation.
    """

    def __init__(self, party: Party) -> None:
        self.party = party
        self.seconds_secure = 0.0, 0.0

    def answer(self, request: Request) -> Data:
        """Reply to a request, or refuse it with a reason."""
        if request.kind == HELLO:
            return self._hello(request)
        if request.kind == REUSE:
            return self._reuse(request)
        if request.kind == CARDS:
            self._begin_again(request)
        job = Job(self.party, request.job)
        reply = job.answer(request)
        self.seconds_secure = job.secure
        return reply

    def _hello(self, request: Request) -> Data:
        """Show a card and the jobs that may be reused or continued."""
        self.party.prepare()
        pending = self.party.issue(text(request.common))
        finished = tuple(
            (facts.job, facts.members)
            for facts in self.party.finished()
            if (facts.data, facts.spec) == (self.party.data, self.party.digest)
        )
        return HelloReply(
            card=pending.card,
            finished=finished,
            open=tuple(self._open_jobs()),
            simulated=self.party.secrets.simulated,
        ).pack()

    def _open_jobs(self) -> list[tuple[str, str]]:
        """Jobs of the same settings and data; one that just ended can still repeat its reply."""
        found = []
        for job in self.party.jobs():
            last = Answered.read(self.party.answers(job))
            if last is None or not last.goes_on:
                continue
            if (last.data, last.spec) == (self.party.data, self.party.digest):
                found.append((job, last.members))
        return found

    def _reuse(self, request: Request) -> Data:
        """Confirm that the result of a finished job is there, made with the same members."""
        hello, *cards = parts_after_hello(request.common)
        pending = self.party.shown(hello)
        roster = verify_cards(
            cards,
            mine=pending.card,
            pins=self.party.secrets.known,
            trust_on_first_use=self.party.secrets.trust,
        )
        party = self.party
        held = {(facts.job, facts.members, facts.data, facts.spec) for facts in party.finished()}
        if (request.job, roster.members_hash, party.data, party.digest) not in held:
            raise ProtocolError(
                f"{party.name!r} holds no result of job {request.job} with these members and "
                "settings; run again with refresh-basis."
            )
        return pack(DONE)

    def _begin_again(self, request: Request) -> None:
        """In a simulation a job may start again: it repeats itself with the same bytes."""
        if not self.party.secrets.simulated:
            return
        last = Answered.read(self.party.answers(request.job))
        hello = parts_after_hello(request.common)[0]
        if last is not None and last.hello.encode() != hello:
            self.party.shown(hello)  # cards of another hello than the last one undo nothing
            self.party.forget_answers(request.job)
