from dataclasses import dataclass

import httpx
import pytest
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from fedlap_app.errors import RunError
from fedlap_app.flower.grids import polling
from fedlap_app.flower.grids.carrier import WrappedGrid
from fedlap_app.flower.grids.polling import PollingGrid


@dataclass
class Info:
    node_id: int
    name: str = "bank-a"
    last_activated_at: str = "first"


class FlowerLike(WrappedGrid):
    """A grid whose replies, errors and nodes a test decides."""

    def __init__(self):
        self.nodes = [Info(7), Info(8, "bank-b")]
        self.pushed = []
        self.answers = {}
        self.fails = set()

    def get_nodes(self):
        self._may_fail("nodes")
        return self.nodes

    def get_node_ids(self):
        return [info.node_id for info in self.get_nodes()]

    def push_messages(self, messages):
        self._may_fail("push")
        ids = []
        for message in messages:
            ids.append(f"flower-{len(self.pushed)}")
            message.metadata.__dict__["_message_id"] = ids[-1]
            self.pushed.append(message)
        return ids

    def pull_messages(self, message_ids):
        self._may_fail("pull")
        return [self.answers.pop(key) for key in message_ids if key in self.answers]

    def send_and_receive(self, messages, *, timeout=None):
        raise AssertionError("it sleeps between two looks: not to be used")

    def answer(self, number, content=None, code=None):
        """Reply to the message with this number, or let Flower report an error."""
        message = self.pushed[number]
        if code is None:
            record = RecordDict({"reply": ConfigRecord({"text": content})})
            reply = Message(record, reply_to=message)
        else:
            reply = Message(Error(code=code, reason="test"), reply_to=message)
            reply.metadata.__dict__["_src_node_id"] = 1  # Flower's own node
        self.answers[message.metadata.message_id] = reply

    def _may_fail(self, what):
        if what in self.fails:
            raise httpx.ConnectError("refused")


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch):
    monkeypatch.setattr(polling, "_LOOK_SECONDS", -1.0)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, SUPERLINK_NODE_ID, 1


@pytest.fixture
def flower():
    return FlowerLike()


@pytest.fixture
def grid(flower):
    made = PollingGrid(flower, patience=60.0)
    assert list(made.get_node_ids()) == [7, 8]
    return made


def message(node=7):
    return Message(RecordDict({"config": ConfigRecord({"n": 1})}), node, "query.join")


def text(reply):
    return reply.content["reply"]["text"]


def test_a_reply_bears_the_id_that_was_given(flower, grid):
    keys = list(grid.push_messages([message(7), message(8)]))
    assert grid.pull_messages(keys) == []
    flower.answer(1, "here")
    (reply,) = grid.pull_messages(keys)
    assert (reply.metadata.reply_to_message_id, text(reply)) == (keys[1], "here")
    assert grid.pull_messages(keys) == []
    assert len(flower.pushed) == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NODE_UNAVAILABLE,
        ErrorCode.MESSAGE_UNAVAILABLE,
        ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
        ErrorCode.CLIENT_APP_CRASHED,
    ],
)
def test_what_flower_reports_as_gone_is_sent_again(flower, grid, code):
    (key,) = grid.push_messages([message()])
    flower.answer(0, code=code)
    assert grid.pull_messages([key]) == []
    assert grid.pull_messages([key]) == []
    assert len(flower.pushed) == 2
    assert flower.pushed[1].content == flower.pushed[0].content
    assert flower.pushed[1].metadata.message_type == "query.join"
    flower.answer(1, "second")
    (reply,) = grid.pull_messages([key])
    assert (text(reply), reply.metadata.reply_to_message_id) == ("second", key)
    assert grid.resent() == {7: 1}


def test_a_lost_message_waits_until_its_node_is_back(flower, grid):
    (key,) = grid.push_messages([message()])
    flower.nodes = [Info(8)]
    flower.answer(0, code=ErrorCode.NODE_UNAVAILABLE)
    for _ in range(3):
        assert grid.pull_messages([key]) == []
    assert len(flower.pushed) == 1
    assert grid.is_away(7)
    flower.nodes = [Info(7, last_activated_at="second"), Info(8)]
    assert grid.pull_messages([key]) == []
    assert len(flower.pushed) == 2
    assert not grid.is_away(7)


def test_what_a_node_held_when_it_was_started_anew_is_sent_again(flower, grid):
    (key,) = grid.push_messages([message()])
    assert grid.pull_messages([key]) == []
    flower.nodes[0].last_activated_at = "second"
    assert grid.pull_messages([key]) == []
    assert grid.pull_messages([key]) == []
    assert len(flower.pushed) == 2


def test_an_error_of_the_client_is_handed_on_with_its_node(flower, grid):
    (key,) = grid.push_messages([message(8)])
    flower.answer(0, code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION)
    (reply,) = grid.pull_messages([key])
    assert reply.has_error()
    assert reply.metadata.src_node_id == 8
    assert len(flower.pushed) == 1


def test_a_client_whose_process_keeps_dying_is_given_up(flower, grid):
    (key,) = grid.push_messages([message()])
    for number in range(polling._CRASHES):
        flower.answer(number, code=ErrorCode.CLIENT_APP_CRASHED)
        assert grid.pull_messages([key]) == []
        assert grid.pull_messages([key]) == []
    flower.answer(polling._CRASHES, code=ErrorCode.CLIENT_APP_CRASHED)
    (reply,) = grid.pull_messages([key])
    assert reply.error.code == ErrorCode.CLIENT_APP_CRASHED


@pytest.mark.parametrize("what", ["push", "pull"])
def test_a_failed_call_loses_nothing(flower, grid, what):
    flower.fails = {what}
    (key,) = grid.push_messages([message()])
    assert grid.pull_messages([key]) == []
    flower.fails = set()
    assert grid.pull_messages([key]) == []
    flower.answer(len(flower.pushed) - 1, "late")
    (reply,) = grid.pull_messages([key])
    assert text(reply) == "late"


def test_a_superlink_that_stays_away_ends_the_run(flower):
    grid = PollingGrid(flower, patience=0.0)
    (key,) = grid.push_messages([message()])
    flower.fails = {"push", "pull", "nodes"}

    def wait():
        while True:
            grid.pull_messages([key])

    with pytest.raises(RunError, match=r"the SuperLink has not answered for 0 s .* start it again"):
        wait()


def test_flower_repeats_no_call_for_ever():
    flower = HttpGrid("127.0.0.1:1", token="token")
    PollingGrid(flower, patience=600.0)
    assert flower._retry_invoker.max_time == polling._CALL_SECONDS


def test_waiting_ends_at_the_limit(flower, grid):
    assert grid.send_and_receive([message()], timeout=0.5) == []


def test_the_registered_name_of_a_node(grid):
    assert list(grid.get_node_ids()) == [7, 8]
    assert grid.registered_names() == {7: "bank-a", 8: "bank-b"}
