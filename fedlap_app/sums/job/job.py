"""One job at one member: each step takes a request and gives the reply and the state after it."""

import warnings
from dataclasses import replace
from functools import cached_property, partial

from fedlap_app.errors import ConsentError, FedLapError, ProtocolError
from fedlap_app.privacy.ledger import FINISHED, Entry, Ledger
from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles, pack_arrays, unpack_arrays
from fedlap_app.store.packing import Data, pack, pack_named, pieces, unpack, unpack_named
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.card import verify_cards
from fedlap_app.sums.choice import make_backend
from fedlap_app.sums.job import answered as last_answer
from fedlap_app.sums.job import columns, entries, live
from fedlap_app.sums.job.agreement import Agreement
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.handshake import Handshake, unpack_senders
from fedlap_app.sums.job.iteration import Iteration, Sent, first_transcript
from fedlap_app.sums.job.live import Live
from fedlap_app.sums.job.messages import (
    CARDS,
    COMPARE,
    CONTRIBUTION,
    DONE,
    MISMATCH,
    PAIRS,
    ROWS,
    SHARE,
    SUMS,
    Request,
    parts_after_hello,
)
from fedlap_app.sums.job.party import ANSWERED, Party, Pending, log
from fedlap_app.sums.job.permission import Permission
from fedlap_app.sums.job.solution import finish, lead
from fedlap_app.sums.keyring import KeyRing, sum_seed
from fedlap_app.sums.program import Site
from fedlap_app.sums.transcript import Transcript


class Job:
    """One job at one member.

    Parameters
    ----------
    party
        The member.
    job
        Id of the job.
    """

    def __init__(self, party: Party, job: str) -> None:
        self.party = party
        self.id = job
        self.files: JobFiles = party.job(job)
        self.key = self.files.at("")
        self.kept = live.find(self.key)
        self.answers = self.kept.answers if self.kept else self.files.newest(ANSWERED)
        self.permission = Permission(party, job)
        self.secure = 0.0, 0.0

    @cached_property
    def ledger(self) -> Ledger:
        """What the job has sent and received so far."""
        return self.kept.ledger if self.kept else self.permission.open_ledger()

    def answer(self, request: Request) -> Data:
        """Reply to a request: the stored bytes when it is repeated."""
        last = self.kept.last if self.kept else Answered.read(self.answers)
        if last_answer.is_repeated(last, request):
            if request.kind == CARDS:
                self.party.use(self.id)
            return last_answer.stored_reply(self.answers)
        if last is None:
            return self._cards(request)
        if last.data != self.party.data or last.spec != self.party.digest:
            raise ProtocolError(
                f"The data or the settings of {self.party.name!r} changed during job {self.id}; "
                "start a new one."
            )
        steps = {PAIRS: self._pairs, COMPARE: self._compare, SUMS: self._sums, SHARE: self._share}
        return steps[request.kind](request, last)

    def _cards(self, request: Request) -> Data:
        """Verify the cards, agree on keys, and seal a message for every peer."""
        hello, *cards = parts_after_hello(request.common)
        pending = self.party.shown(hello)
        secrets = self.party.secrets
        roster = verify_cards(
            cards, mine=pending.card, pins=secrets.known, trust_on_first_use=secrets.trust
        )
        if roster.job != self.id:
            raise ProtocolError(f"The cards are not those of job {self.id}; they were altered.")
        self.permission.require(roster.names)
        self.permission.say_what_is_weaker()
        self.party.bind(pending, self.id)
        self.party.make_room()
        for accepted in secrets.remember(roster):
            log.warning("Trusted on first use: %s", accepted)
        keys = KeyRing.agree(secrets.identity, self.party.name, pending.job_secret, roster)
        handshake = Handshake(
            subgraph=self.party.subgraph,
            spec=self.party.spec,
            job_secret=pending.job_secret,
            keys=keys,
            leader=roster.leader,
            contribution=secrets.contribution(pending.job_secret, self.id),
            public_key=self._public_key(pending),
        )
        if absent := handshake.absent():
            self.party.note(names.ABSENT, absent)
        handshake.require_partners()
        sealed = handshake.pair_messages()
        shown = () if self.party.spec.hide_topology else handshake.partners()
        state = Answered(
            hello=pending.hello,
            step=0,
            request="",
            expects=PAIRS,
            spec=self.party.digest,
            data=self.party.data,
            members=roster.members_hash,
            form=last_answer.FORM,
        )
        reply = pack(pack(*(name.encode() for name in shown)), pack_named(sealed))
        state = state.after(request, PAIRS)
        self.ledger = self.permission.new_ledger(roster.names)
        self.ledger.enter(0, 0, entries.of_cards(handshake, len(shown)))
        state.write(self.answers, reply, handshake.pack())
        self.party.use(self.id)
        live.keep(self.key, Live(self.answers, state, handshake, self.ledger))
        return reply

    def _public_key(self, pending: Pending) -> bytes:
        """Public key of the own block sums; drawn anew until the reply that shows it is stored."""
        spec = self.party.spec
        if not spec.program.sums:
            return b""
        return spec.facts.new_public_key(spec.profile, sum_seed(pending.job_secret))

    def _handshake(self, last: Answered) -> Handshake:
        """The handshake as it was begun."""
        kept = live.take(self.key)
        if kept is not None and kept.last is last and isinstance(kept.work, Handshake):
            return kept.work
        begun = last_answer.stored_rest(self.answers)
        return Handshake.unpack(begun, self.party.subgraph, self.party.spec)

    def _pairs(self, request: Request, last: Answered) -> Data:
        """Compare edges with all peers; agree, or say with whom they differ."""
        handshake = self._handshake(last)
        opened = handshake.open(unpack_named(request.own))
        differing = handshake.differing(opened)
        if differing:
            hashes = handshake.edge_hashes(differing)
            reply = pack(MISMATCH, pack_named(hashes))
            told = (*entries.of_pairs(handshake), *entries.of_hashes(handshake, differing))
            self.ledger.enter(request.step, 0, told)
            last.after(request, COMPARE).write(self.answers, reply, handshake.pack())
            return reply
        agreement = handshake.agree(opened, unpack_senders(request.common))
        told = (*entries.of_pairs(handshake),)
        if not self.party.spec.program.sums:
            return self._close(agreement, request, last, told)
        iteration = self._iteration(agreement, first_transcript(agreement), Sent(0, -1, 0, 0))
        contribution, more = self._contribute(iteration, request.step)
        state = last.after(request, SUMS, **iteration.facts())
        return self._keep(iteration, state, contribution, (*told, *more))

    def _close(
        self, agreement: Agreement, request: Request, last: Answered, told: tuple[Entry, ...]
    ) -> Data:
        """End with the handshake and forget the keys: nothing else is asked of the job."""
        content, more = self.party.spec.program.close(self._site(agreement))
        reply = pack(ROWS, content)
        self.ledger.enter(request.step, 0, (*told, *more), FINISHED)
        return self._over(request, last, reply)

    def _over(self, request: Request, last: Answered, reply: Data) -> Data:
        """Store the last reply of the job, and forget the rest."""
        last.after(request, "").write(self.answers, reply)
        self.files.drop(columns.FILE)
        self.answers.trim()
        self.party.retire(last.hello)
        return reply

    def _compare(self, request: Request, last: Answered) -> Data:
        """Count the edges that only one side has; the own ones go to a local log."""
        sealed: dict[str, Data] = dict(unpack_named(request.own))
        counts: list[bytes] = []
        for peer, (found, border) in self._handshake(last).compare(sealed).items():
            sources, targets = border.ends(self.party.subgraph)
            path = self.party.note(
                names.MISMATCH,
                [f"only here, not at {peer}: {sources[i]} {targets[i]} {border.weights[i]:g}"
                 for i in found.unmatched],
            )  # fmt: skip
            log.warning("%s: edges that %s lacks are in %s", self.party.name, peer, path)
            counts += [peer.encode(), b"%d" % found.only_mine, b"%d" % found.only_theirs]
        reply = pack(*counts)
        self.ledger.enter(request.step, 0, (), "edges differ")
        last.after(request, "").write(self.answers, reply)
        self.answers.trim()
        return reply

    def _sums(self, request: Request, last: Answered) -> Data:
        """Take in the sums and go on to the next contribution, or to the end."""
        iteration = self._take(last)
        try:
            received, small = iteration.open(request)
        except ProtocolError as error:
            self._end(request, last, str(error))
            raise
        half = iteration.half
        told = (*entries.of_sums(iteration, iteration.sent),)
        half.absorb(received, small)
        arrays = pack_arrays(half.settle())
        if half.done and not iteration.spec.program.solution:
            return self._finish(iteration, request, last, told)
        if half.done:
            expects, reply = SHARE, lead(iteration, request.step)
            more = (*entries.of_lead(iteration),)
        else:
            expects = SUMS
            reply, more = self._contribute(iteration, request.step)
        state = last.after(request, expects, **iteration.facts())
        return self._keep(iteration, state, reply, (*told, *more), arrays)

    def _contribute(self, iteration: Iteration, step: int) -> tuple[Data, tuple[Entry, ...]]:
        """The contribution to the next sums, and what the ledger says of it."""
        allow = partial(self._allow, iteration.agreement.keys.members)
        reply = pack(CONTRIBUTION, iteration.contribute(step, allow))
        return reply, (*entries.of_contribution(iteration),)

    def _end(self, request: Request, last: Answered, reason: str) -> None:
        """Remember that a sum was refused: the job is over, and no other sum is tried on it."""
        live.take(self.key)
        try:
            self.ledger.close(f"refused: {reason}")
            replace(last, expects="", ended=reason).write(self.answers, b"")
        except FedLapError:
            # On a full disk the keys go at once: nothing can be tried on a job without them.
            self.party.forget(self.id)
            self.party.retire(last.hello)
            raise
        self.answers.trim()
        self.files.drop(columns.FILE)
        self.party.retire(last.hello)

    def _allow(self, members: tuple[str, ...], vectors: int) -> None:
        """Ask for consent to the next product, and count its vectors before they leave."""
        try:
            self.permission.require(members, vectors)
        except ConsentError as error:
            self.ledger.close(f"refused: {error}")
            raise
        self.permission.count(vectors)

    def _share(self, request: Request, last: Answered) -> Data:
        """Read the leader's solution."""
        iteration = self._take(last)
        if not iteration.half.done:
            raise ProtocolError("The sums are not over; the message came too early.")
        return self._finish(iteration, request, last, (*entries.of_solution(iteration),))

    def _finish(
        self, iteration: Iteration, request: Request, last: Answered, told: tuple[Entry, ...]
    ) -> Data:
        """Keep the result and forget the keys."""
        result = finish(iteration, request, last)
        if self.party.results is not None:
            self.party.results.save(result)
        self.ledger.enter(request.step, iteration.columns, told, FINISHED)
        self.secure = iteration.meter.take()
        del iteration, result
        return self._over(request, last, pack(DONE))

    def _keep(
        self,
        iteration: Iteration,
        state: Answered,
        reply: Data,
        told: tuple[Entry, ...],
        arrays: Data = b"",
    ) -> Data:
        """Store state and reply, then keep the iteration in memory for the next message."""
        self.ledger.enter(state.step, iteration.columns, told)
        rest = pieces(iteration.agreement.packed, arrays, iteration.half.stored())
        state.write(self.answers, reply, [*rest])
        self.secure = iteration.meter.take()
        live.keep(self.key, Live(self.answers, state, iteration, self.ledger))
        return reply

    def _take(self, last: Answered) -> Iteration:
        """The iteration of the last answer; whatever fails from here on starts from the store."""
        kept = live.take(self.key)
        if kept is not None and kept.last is last and isinstance(kept.work, Iteration):
            return kept.work
        agreed, state, stored = unpack(last_answer.stored_rest(self.answers), 3)
        agreement = Agreement.unpack(agreed)
        transcript = Transcript(bytes.fromhex(last.transcript))
        iteration = self._iteration(agreement, transcript, Sent(*last.sent))
        iteration.columns, iteration.numbers = last.columns, last.numbers
        iteration.half.restore(unpack_arrays(state), stored)
        return iteration

    def _iteration(self, agreement: Agreement, transcript: Transcript, sent: Sent) -> Iteration:
        with warnings.catch_warnings():
            # The server says it once for the whole run.
            warnings.simplefilter("ignore", InsecureWarning)
            backend = make_backend(
                self.party.spec.backend,
                agreement.keys,
                profile=self.party.spec.profile,
                senders=agreement.senders,
            )
        half = self.party.spec.program.half(self._site(agreement))
        return Iteration(half, self.party.spec, agreement, backend, transcript, sent)

    def _site(self, agreement: Agreement) -> Site:
        party = self.party
        return Site(
            job=self.id,
            spec=party.spec,
            agreement=agreement,
            subgraph=party.subgraph,
            values=party.values,
            files=self.files,
            secrets=party.secrets,
            root=party.root,
        )
