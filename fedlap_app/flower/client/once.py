"""Answer one message in a process of its own: ``python -m fedlap_app.flower.client.once FOLDER``.

The folder holds the serialised message and context; the reply and the new context are written
beside them.
"""

import sys
from pathlib import Path

from flwr.common.serde import (
    context_from_proto,
    context_to_proto,
    message_from_proto,
    message_to_proto,
)
from flwr.proto.message_pb2 import Context as ProtoContext
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.supercore.task_identity import TaskIdentity

from fedlap_app.flower.client.app import app


def main(folder: Path) -> None:
    """Answer the message in the folder."""
    message = message_from_proto(ProtoMessage.FromString((folder / "message").read_bytes()))
    context = context_from_proto(ProtoContext.FromString((folder / "context").read_bytes()))
    TaskIdentity.run_id = context.run_id
    TaskIdentity.node_id = context.node_id
    TaskIdentity.task_id = context.run_id
    reply = app(message, context)
    (folder / "context").write_bytes(context_to_proto(context).SerializeToString())
    # The reply comes last: a process that dies before has not answered.
    (folder / "reply.part").write_bytes(message_to_proto(reply).SerializeToString())
    (folder / "reply.part").replace(folder / "reply")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
