"""A SuperNode's own Runtime API in this process, with tasks that a SuperLink could have sent."""

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import uvicorn
from flwr.app import Context, Message, RecordDict
from flwr.app.user_config import UserConfigValue
from flwr.cli.build import build_fab_from_files
from flwr.supercore.fab import Fab
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.main import create_app
from flwr.supernode.nodestate import NodeStateFactory
from flwr.supernode.start_client_internal import _insert_message

import fedlap_app
from fedlap_app.flower.submission import free_ports

SECRET = b"of this SuperNode and its SuperExec"
PROJECT = """
[project]
name = "{name}"
version = "{version}"
license = "Apache-2.0"
[tool.flwr.app]
publisher = "fedlap"
[tool.flwr.app.components]
serverapp = "server_app.app:app"
clientapp = "client_app.app:app"
"""


def bundle_of(modules: dict[str, str], version: str, name: str = "fedlap") -> Fab:
    """A bundle as `flwr run` would submit it."""
    files = {path: text.encode() for path, text in modules.items()}
    files["pyproject.toml"] = PROJECT.format(name=name, version=version).encode()
    files["README.md"] = b"# FedLap\n"
    content, _ = build_fab_from_files(files)
    return Fab(hashlib.sha256(content).hexdigest(), content, {})


class SuperNode:
    """Flower's SuperNode as far as a SuperExec sees it; the SuperLink's part is played by tests."""

    def __init__(self, node_config: dict[str, str]) -> None:
        self.factory = NodeStateFactory(ObjectStoreFactory())
        self.state = self.factory.state()
        self.state.set_node_id(7)
        self.node_config = node_config
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        app = create_app(self.factory, superexec_auth_secret=SECRET)
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")
        self._server = uvicorn.Server(config)
        self._numbers = count(1)

    def __enter__(self) -> "SuperNode":
        threading.Thread(target=self._server.run, daemon=True).start()
        while not self._server.started:
            time.sleep(0.02)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._server.should_exit = True

    def send(
        self,
        kind: str,
        fab: Fab,
        config: Mapping[str, UserConfigValue],
        version: str = fedlap_app.__version__,
        name: str = "fedlap",
    ) -> tuple[int, int]:
        """Queue a message with a task of a kind, as a SuperLink's label decides it."""
        run_id = next(self._numbers)
        run = replace(
            Run.create_empty(run_id),
            fab_id=f"fedlap/{name}",
            fab_version=version,
            fab_hash=fab.hash_str,
            series_id=run_id,
        )
        context = Context(run_id, 7, dict(self.node_config), RecordDict(), dict(config), run_id)
        self.state.set_run_series_context(run_id, context)
        self.state.store_run(run)
        self.state.store_fab(fab)
        TaskIdentity.task_id = TaskIdentity.run_id = run_id
        TaskIdentity.node_id = 1
        message = Message(RecordDict(), dst_node_id=7, message_type="query.join")
        _insert_message(message, self.state, self.state.object_store)
        task = self.state.create_task(kind, run_id, fab_hash=fab.hash_str)
        assert task is not None
        return run_id, task

    def reply(self, run_id: int) -> Message:
        """What went back for the message of a run."""
        (found,) = self.state.get_messages_legacy(run_ids=[run_id], is_reply=True)
        if found.has_error():
            return found
        objects = {
            each.object_id: self.state.object_store.get(each.object_id)
            for each in iterate_object_tree(
                self.state.object_store.get_object_tree(found.metadata.message_id)
            )
        }
        message = inflate_object_from_contents(found.metadata.message_id, objects)
        assert isinstance(message, Message)
        return message

    def finished(self, task: int) -> str:
        """How a task ended, or nothing yet."""
        (found,) = self.state.get_tasks(task_ids=[task])
        return found.status.sub_status
