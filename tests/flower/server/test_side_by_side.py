"""Members on processors of different kinds, each in a process of its own, train one model."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import Message as ProtoMessage
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from fedlap_app.flower.grids.local_grid import LocalGrid, folder_configs, new_run_id
from fedlap_app.flower.server.run import run
from tests.adversary.scene import Scene
from tests.flower.server.models import kept_in, same

THERE = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
KINDS = (
    {},
    {"NPY_DISABLE_CPU_FEATURES": " ".join(THERE), "ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
)


def answer_all():
    """A member's process: messages come in, replies go out."""
    from flwr.supercore.task_identity import TaskIdentity

    from client_app.app import app

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no reply
    while True:
        content, context = pickle.load(sys.stdin.buffer)
        TaskIdentity.run_id = TaskIdentity.task_id = context.run_id
        TaskIdentity.node_id = context.node_id
        try:
            reply = app(message_from_proto(ProtoMessage.FromString(content)), context)
            found = message_to_proto(reply).SerializeToString()
        except Exception as error:
            found = repr(error)
        pickle.dump(found, out)
        out.flush()


class Beside(LocalGrid):
    """Every member has a process, and every process another kind of processor."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        command = "from tests.flower.server.test_side_by_side import answer_all; answer_all()"
        self._processes = {
            node: subprocess.Popen(
                [sys.executable, "-c", command],
                env={**os.environ, **kind, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for node, kind in zip(self.get_node_ids(), KINDS, strict=True)
        }

    def _deliver(self, message, context):
        process = self._processes[message.metadata.dst_node_id]
        pickle.dump((message_to_proto(message).SerializeToString(), context), process.stdin)
        process.stdin.flush()
        found = pickle.load(process.stdout)
        if isinstance(found, str):
            raise RuntimeError(found)
        return message_from_proto(ProtoMessage.FromString(found))

    def close(self):
        """End the processes."""
        for process in self._processes.values():
            process.kill()
            process.communicate()


def test_members_on_other_processors_train_one_model(settings, observer, tmp_path):
    assert THERE
    settings = replace(
        settings, training_backend="mask", rounds=4, self_training=1, strategy="fedadam"
    )
    scene = Scene(tmp_path, settings)
    folders = scene.folders.values()
    grid = Beside(folder_configs(folders), settings.to_config(), run_id=new_run_id())
    try:
        summary = run(grid, settings, observer)
    finally:
        grid.close()
    assert same(*(kept_in(scene.store(name), summary["run_id"]) for name in scene.names))
