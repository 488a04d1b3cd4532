"""Offline phases of three small banks, and messages that no honest server or member sends."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.settings import Settings
from fedlap_app.sums.job.bases import Bases
from fedlap_app.sums.job.live import forget as forget_live

FIRST_NODE = 101
HONEST = replace(
    Settings(),
    method="fedlap+",
    accounts=240,
    clients=3,
    vectors=6,
    block=3,
    spectral=True,
    backend="mask",
    step_timeout=60.0,
)


def settings_in(folder, **changes):
    """Settings whose stores are in a folder."""
    return replace(HONEST, store_dir=str(folder / "stores"), **changes)


class Grid(InProcessGrid):
    """Calls the real ClientApp; a test may change what goes in and what comes out."""

    def __init__(self, settings):
        super().__init__(
            app,
            partition_configs(settings.clients),
            settings.to_config(),
            run_id=new_run_id(),
        )

    def alter(self, message):
        """The message that the client gets."""
        return message

    def alter_reply(self, message, reply):
        """The reply that the server gets."""
        return reply

    def _deliver(self, message, context):
        reply = super()._deliver(self.alter(message), context)
        return self.alter_reply(message, reply)


def asked_of(message):
    """Kind, job and step of a message of the phase; three empty texts for any other."""
    own = message.content.get("own")
    return str(own["asked"]).split() if own is not None else ["", "", ""]


def phase(settings, grid=None):
    """Run the phase to its end, as new processes."""
    forget_live()
    known = MemberGrid(grid or Grid(settings))
    return run_offline(known, gather(known, settings), settings)


def bases(settings):
    """Rows of U of every organisation, by name."""
    found = {}
    for store in sorted(Path(settings.store_dir).iterdir()):
        kept = Bases(store / "basis")
        for facts in kept.facts():
            if facts.columns == settings.vectors:
                found[store.name] = np.array(kept.load(facts).U)
    return found


def same(first, second):
    """Whether two phases gave the same bits."""
    equal = (np.array_equal(first[name], second[name]) for name in first)
    return len(first) > 0 and first.keys() == second.keys() and all(equal)


def with_body(message, which, body):
    """A copy of a message with another content of one record."""
    changed = copy.deepcopy(message)
    changed.content[which] = ConfigRecord({**changed.content[which], "body": body})
    return changed


def ask(grid, own, common=None, node=FIRST_NODE):
    """Send one message of the phase to a client; gives its reply or the reason of its refusal."""
    content = RecordDict({"own": ConfigRecord(own), "common": ConfigRecord(common or {})})
    message = Message(content, node, "query.offline")
    (reply,) = grid.send_and_receive([message])
    assert reply.has_content(), reply.error
    refusal = reply.content.get("refusal")
    return reply.content["reply"] if refusal is None else str(refusal["reason"])
