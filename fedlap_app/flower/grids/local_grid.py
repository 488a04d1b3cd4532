"""Grids without a network: one calls the ClientApp in this process, one in a process a message."""

import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.common.serde import (
    context_from_proto,
    context_to_proto,
    message_from_proto,
    message_to_proto,
)
from flwr.proto.message_pb2 import Context as ProtoContext
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fedlap_app.flower.client.organisation import Seat
from fedlap_app.flower.grids.carrier import Carrier, addressed
from fedlap_app.flower.grids.turns import turn
from fedlap_app.knobs import Value
from fedlap_app.methods.organisation import Organisation

_FIRST_NODE = 101  # Flower's own server is node 1

NodeConfig = Mapping[str, Value]
Listener = Callable[[int, str, RecordDict, RecordDict], None]
"""Is told the number of the node, the type of the message, its content and that of the reply."""


def unheard(node: int, kind: str, sent: RecordDict, answered: RecordDict) -> None:
    """Take no note of a message."""


class LocalGrid(Carrier):
    """A federation on this machine; `_deliver` says how a message reaches its client.

    Parameters
    ----------
    node_configs : Sequence[NodeConfig]
        Node configuration of each client, as a SuperNode has it.
    run_config : Mapping[str, Value]
        Run configuration, the same for all.
    run_id : int (default: 1)
        Number of the run.
    """

    def __init__(
        self,
        node_configs: Sequence[NodeConfig],
        run_config: Mapping[str, Value],
        *,
        run_id: int = 1,
    ) -> None:
        self._run = Run.create_empty(run_id)
        self._contexts = {
            node_id: Context(
                run_id=run_id,
                node_id=node_id,
                node_config=dict(config),
                state=RecordDict(),
                run_config=dict(run_config),
            )
            for node_id, config in enumerate(node_configs, start=_FIRST_NODE)
        }
        self._stores = str(run_config.get("store-dir", ""))
        self._replies: dict[str, Message] = {}
        self._count = 0
        TaskIdentity.run_id = run_id
        TaskIdentity.node_id = SUPERLINK_NODE_ID
        TaskIdentity.task_id = run_id

    @abstractmethod
    def _deliver(self, message: Message, context: Context) -> Message:
        """Hand the message to the client and return its reply; may raise what the client raised."""

    def turn(self, names: Sequence[str], limit: float) -> AbstractContextManager[None]:
        """Keep other runs on this machine away from the offline phase of these organisations."""
        return turn(names, self._stores, limit)

    def set_run(self, run: Run) -> None:
        """Set the run."""
        self._run = run

    @property
    def run(self) -> Run:
        """Run information."""
        return self._run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message to a client."""
        return Message(content, dst_node_id, message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Numbers of the clients."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver the messages one after the other and keep the replies."""
        ids = []
        for message in messages:
            self._count += 1
            message_id = f"local-{self._count}"
            ids.append(message_id)
            run = self._run.run_id
            reply = self._answer(addressed(message, message_id=message_id, run_id=run))
            if reply is not None:
                self._replies[message_id] = reply
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that have not been pulled yet."""
        return [self._replies.pop(key) for key in list(message_ids) if key in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Deliver the messages and return the replies."""
        return self.pull_messages(self.push_messages(messages))

    def _answer(self, message: Message) -> Message | None:
        """Reply of the client, or Flower's own kind of error reply; None: nobody is there."""
        context = self._contexts.get(message.metadata.dst_node_id)
        if context is None:
            return None
        try:
            reply = self._deliver(message, context)
        except Exception as error:  # as Flower does: whatever a client raises becomes a reply
            reason = f"{type(error)}:<'{error}'>"
            failure = Error(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason=reason)
            reply = Message(failure, reply_to=message)
        return addressed(reply, message_id=f"{message.metadata.message_id}-reply")


class InProcessGrid(LocalGrid):
    """Calls the ClientApp in this process: a few milliseconds a round, no Ray.

    Parameters
    ----------
    client_app, node_configs, run_config, run_id
        As in a `LocalGrid`, and what answers.
    organisations : Sequence[Organisation] (default: ())
        Whom the clients speak for, in their order; none: each looks for its own data.
    listener : Listener (default: nobody)
        Is told of every message that was answered; attacks record a run so.
    """

    def __init__(
        self,
        client_app: ClientApp,
        node_configs: Sequence[NodeConfig],
        run_config: Mapping[str, Value],
        *,
        run_id: int = 1,
        organisations: Sequence[Organisation] = (),
        listener: Listener = unheard,
    ) -> None:
        super().__init__(node_configs, run_config, run_id=run_id)
        self._client_app = client_app
        self._listener = listener
        for node, organisation in zip(list(self._contexts), organisations, strict=False):
            self._contexts[node] = Seat(self._contexts[node], organisation)

    def close(self) -> None:
        """Let go of what the grid has started: nothing here."""

    def _deliver(self, message: Message, context: Context) -> Message:
        reply = self._client_app(message, context)
        if reply.has_content():
            metadata = message.metadata
            kind, node = metadata.message_type, metadata.dst_node_id
            self._listener(node, kind, message.content, reply.content)
        return reply


class ProcessGrid(LocalGrid):
    """Starts a fresh process for every message, as Flower's deployment does.

    What must survive a restart of a client is tested on this grid.
    """

    patience = 600.0  # seconds for one message

    def _deliver(self, message: Message, context: Context) -> Message:
        with tempfile.TemporaryDirectory(prefix="fedlap-message-") as folder:
            path = Path(folder)
            (path / "message").write_bytes(message_to_proto(message).SerializeToString())
            (path / "context").write_bytes(context_to_proto(context).SerializeToString())
            command = [sys.executable, "-m", "fedlap_app.flower.client.once", folder]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=self.patience
            )
            if not (path / "reply").exists():
                lines = done.stderr.strip().splitlines()
                ending = f"its process ended with exit code {done.returncode} before it answered"
                raise RuntimeError(f"{ending}: {lines[-1]}" if lines else ending)
            reply = message_from_proto(ProtoMessage.FromString((path / "reply").read_bytes()))
            context.state = context_from_proto(
                ProtoContext.FromString((path / "context").read_bytes())
            ).state
        return reply


def partition_configs(count: int) -> list[NodeConfig]:
    """Node configurations of a simulation with `count` clients."""
    return [{"partition-id": index, "num-partitions": count} for index in range(count)]


def folder_configs(folders: Iterable[Path]) -> list[NodeConfig]:
    """Node configurations of clients that each have an organisation folder."""
    return [{"data-dir": str(folder.absolute())} for folder in folders]


def new_run_id() -> int:
    """A number for a run on this machine, increasing with time."""
    return time.time_ns() // 1_000
