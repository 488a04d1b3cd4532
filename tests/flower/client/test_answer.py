"""What leaves an organisation when something goes wrong there."""

import errno

import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from fedlap_app.errors import DataError, RunError
from fedlap_app.flower.client.answer import REFUSAL, answer
from fedlap_app.store.folders import StoreError

SECRET = "DE00-secret-account"


@pytest.fixture
def ask(tmp_path):
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1
    content = RecordDict({"config": ConfigRecord({"run": 1})})
    message = Message(content=content, dst_node_id=7, message_type="train")
    message.metadata.__dict__["_message_id"] = "m"

    def send(error, store_dir):
        def handler(organisation, received):
            raise error

        context = Context(
            run_id=1,
            node_id=7,
            node_config={"partition-id": 0, "num-partitions": 2},
            state=RecordDict(),
            run_config={"accounts": 240, "store-dir": str(store_dir)},
        )
        return answer(message, context, handler).content[REFUSAL]

    return send


@pytest.mark.parametrize("error", [DataError(SECRET), KeyError(SECRET), StoreError(SECRET)])
def test_details_stay_in_a_local_file(ask, tmp_path, error):
    refusal = ask(error, tmp_path)
    assert SECRET not in str(refusal["reason"])
    assert refusal["who"] == "bank-00"
    assert SECRET in (tmp_path / "partition-0" / "errors.log").read_text()


def test_a_sentence_without_data_is_passed_on(ask, tmp_path):
    assert ask(RunError("lower the learning rate"), tmp_path)["reason"] == "lower the learning rate"


def test_a_log_that_cannot_be_written_changes_nothing_for_the_server(ask, tmp_path):
    (tmp_path / "partition-0").write_text("in the way")
    refusal = ask(DataError(SECRET), tmp_path)
    assert "its data cannot be used" in str(refusal["reason"])
    assert str(tmp_path) not in str(refusal["reason"])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_full_disk_is_told_with_its_remedy(ask, tmp_path, number, wrapped):
    error: Exception = OSError(number, "no room", SECRET)
    if wrapped:
        try:
            try:
                raise error
            except OSError:
                raise StoreError(f"{SECRET} cannot be written") from None
        except StoreError as outer:
            error = outer
    reason = str(ask(error, tmp_path)["reason"])
    assert reason.startswith("its disk is full; free some space there")
    assert SECRET not in reason


@pytest.mark.parametrize(
    ("error", "lacking"),
    [
        (MemoryError(SECRET), "memory"),
        (OSError(errno.ENOMEM, "no room", SECRET), "memory"),
        (OSError(errno.EMFILE, "too many", SECRET), "open files"),
    ],
)
def test_a_process_that_is_short_of_something_says_of_what(ask, tmp_path, error, lacking):
    reason = str(ask(error, tmp_path)["reason"])
    assert reason.startswith(f"its process has not enough {lacking}: allow it more there")
    assert SECRET not in reason
