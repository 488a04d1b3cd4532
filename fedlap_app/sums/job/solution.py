"""The end of a program: a solution that the leader shares under the group key, and the result."""

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data, pack, unpack
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.iteration import Iteration
from fedlap_app.sums.job.messages import SOLUTION, WAITING, Request
from fedlap_app.sums.job.price import read_price
from fedlap_app.sums.job.results import Facts


def lead(iteration: Iteration, step: int) -> Data:
    """Reply after the last sums: the leader's sealed solution, nothing from the others."""
    keys = iteration.agreement.keys
    if keys.me != iteration.agreement.leader:
        return pack(WAITING)
    content = pack(iteration.transcript.digest, *iteration.half.solve())
    place = Place(iteration.spec.program.solution, step)
    return pack(SOLUTION, keys.broadcast(keys.me).seal(content, place))


def finish(iteration: Iteration, request: Request, last: Answered) -> object:
    """What the half leaves in the store, with the leader's solution and the price if it has one."""
    parts: list[Data] = []
    price = None
    if iteration.spec.program.solution:
        parts, price = _open(iteration, request), read_price(request.own)
    facts = Facts(
        job=request.job,
        members=last.members,
        spec=last.spec,
        data=last.data,
        organisations=iteration.agreement.keys.members,
        rows=int((iteration.agreement.layout.slot_of >= 0).sum()),
        columns=iteration.columns,
        numbers=iteration.numbers,
    )
    return iteration.half.result(facts, parts, price)


def _open(iteration: Iteration, request: Request) -> list[Data]:
    """Parts of the leader's solution, if it was told the same sums."""
    channel = iteration.agreement.keys.broadcast(iteration.agreement.leader)
    place = Place(iteration.spec.program.solution, request.step - 1)
    transcript, *parts = unpack(channel.open(bytes(request.common), place)) or [memoryview(b"")]
    if bytes(transcript) != iteration.transcript.digest:
        raise ProtocolError(
            "The leader was told other sums than this member; the server gave different ones, "
            "the run must stop."
        )
    return [*parts]
