"""The in-process grid with a listener: hears every message and its reply."""

from collections.abc import Callable

from flwr.app import Context, Message, RecordDict

from fedlap_app.settings import Settings
from server_app.local_grid import InProcessGrid, new_run_id, partition_configs

Listener = Callable[[int, str, RecordDict, RecordDict], None]
"""Is told the number of the node, the type of the message, its content and that of the reply."""


class RecordingGrid(InProcessGrid):
    """Delivers messages as the in-process grid does, and tells a listener.

    Parameters
    ----------
    settings
        Settings, whose `clients` is set.
    listener
        Is told of every message that was answered.
    """

    def __init__(self, settings: Settings, listener: Listener) -> None:
        from client_app.app import app

        configs = partition_configs(settings.clients)
        super().__init__(app, configs, settings.to_config(), run_id=new_run_id())
        self._listener = listener

    def _deliver(self, message: Message, context: Context) -> Message:
        reply = super()._deliver(message, context)
        if reply.has_content():
            metadata = message.metadata
            kind, node = metadata.message_type, metadata.dst_node_id
            self._listener(node, kind, message.content, reply.content)
        return reply
