"""A grid whose clients live in worker processes of this machine, each organisation in one of them.

An organisation answers the same whichever process it lives in, and replies come in the order of the
messages: the result has the bits of a run in one process.
"""

import atexit
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from flwr.app import Context, Message
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as ProtoMessage

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.carrier import addressed
from fedlap_app.flower.grids.local_grid import InProcessGrid

_REPLIED, _RAISED = b"0", b"1"
_STOPS = {signal.SIGINT, signal.SIGTERM}
_PATIENCE = 5.0  # seconds for the end of a process


def usable_cores() -> int:
    """Cores that this process may use, where processes can be forked; else 1."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class WorkerGrid(InProcessGrid):
    """Calls the ClientApp in processes that were forked from this one.

    Parameters
    ----------
    processes
        How many there are at most.
    others
        Parameters of an `InProcessGrid`; nobody listens.
    """

    def __init__(self, *others: Any, processes: int, **named: Any) -> None:  # noqa: ANN401
        super().__init__(*others, **named)
        count = max(1, min(processes, len(self._contexts)))
        self._worker_of = {node: at % count for at, node in enumerate(self._contexts)}
        self._workers: list[_Worker] = []
        self._asked: dict[str, Future[Message | None]] = {}

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Hand every message to the worker of its client."""
        self._start()
        ids = []
        for message in messages:
            self._count += 1
            message_id = f"local-{self._count}"
            ids.append(message_id)
            sent = addressed(message, message_id=message_id, run_id=self._run.run_id)
            node = message.metadata.dst_node_id
            if node in self._worker_of:
                worker = self._workers[self._worker_of[node]]
                self._asked[message_id] = worker.pool.submit(self._answer, sent)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies to these messages, once all of them are there."""
        asked = [self._asked.pop(key) for key in list(message_ids) if key in self._asked]
        return [reply for each in asked if (reply := each.result()) is not None]

    def close(self) -> None:
        """End the workers; where that is interrupted, the rest at the end of this process."""
        while self._workers:
            self._workers[-1].end()
            self._workers.pop()
        atexit.unregister(self.close)

    def _deliver(self, message: Message, context: Context) -> Message:
        return self._workers[self._worker_of[context.node_id]].ask(message)

    def _start(self) -> None:
        """Fork the workers, which have the organisations from here without a copy."""
        if self._workers:
            return
        import torch  # noqa: F401 - here once, not once in every worker

        atexit.register(self.close)
        for number in range(max(self._worker_of.values(), default=-1) + 1):
            others = [worker.line for worker in self._workers]
            self._workers.append(_Worker(self, number, others))

    def serve(self, line: Connection) -> None:
        """Answer messages until the other end is closed: the life of a worker."""
        with suppress(EOFError):
            while True:
                message = message_from_proto(ProtoMessage.FromString(line.recv_bytes()))
                context = self._contexts[message.metadata.dst_node_id]
                try:
                    reply = InProcessGrid._deliver(self, message, context)
                except Exception as error:  # the other end raises it anew
                    line.send_bytes(_RAISED)
                    line.send_bytes(f"{type(error).__name__}: {error}".encode())
                    continue
                line.send_bytes(_REPLIED)
                line.send_bytes(message_to_proto(reply).SerializeToString())


class _Worker:
    """A process, the line to it, and a thread that waits for its answers."""

    def __init__(self, grid: WorkerGrid, number: int, others: list[Connection]) -> None:
        fork = multiprocessing.get_context("fork")
        self.line, theirs = fork.Pipe()
        self.pool = ThreadPoolExecutor(1, f"worker-{number}")
        arguments = (grid, theirs, [self.line, *others])
        self.process = fork.Process(target=_live, args=arguments, name=f"fedlap-{number}")
        with _unstopped():
            self.process.start()
        theirs.close()

    def ask(self, message: Message) -> Message:
        """The reply to a message; what the client raised is raised."""
        try:
            self.line.send_bytes(message_to_proto(message).SerializeToString())
            kind, content = self.line.recv_bytes(), self.line.recv_bytes()
        except (EOFError, OSError):
            raise RunError(
                "a process that answers for organisations has ended: look whether the machine ran "
                "out of memory, or take fewer processes"
            ) from None
        if kind == _RAISED:
            raise RunError(content.decode())
        return message_from_proto(ProtoMessage.FromString(content))

    def end(self) -> None:
        """Let the process see that nobody asks any more."""
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.line.close()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.terminate()


@contextmanager
def _unstopped() -> Iterator[None]:
    """Keep signals back while a process is forked: one in between leaves locks of modules taken."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _live(grid: WorkerGrid, line: Connection, others: list[Connection]) -> None:
    """Be a worker: Ctrl-C is for the parent, and one thread suffices for each."""
    for each in others:
        each.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    grid.serve(line)
    os._exit(0)  # what the parent registered for its end is not for here
