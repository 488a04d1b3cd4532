from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.lanes import WIDTHS, Lanes
from fedlap_app.sums.training.agreed import KEPT, LAST
from tests.sums.training.federation import SHAPE, STATE, Federation


def test_a_repeated_question_gets_the_same_bytes_and_no_other_gets_any(federation):
    some = federation(4).begin()
    job, drawn = some.jobs["client-01"], some.draw()
    turn = some.turn(1)
    sealed = bytes(job.seal(turn, *drawn["client-01"]))
    assert job.seal(turn, *some.draw(seed=9)["client-01"]) == sealed
    assert some.job("client-01").seal(turn, *some.draw(seed=9)["client-01"]) == sealed
    with pytest.raises(ProtocolError, match="answered for other members"):
        job.stored(some.turn(1, members=some.names[:3]))


def test_replies_of_the_last_two_rounds_are_kept_and_older_ones_refused(federation):
    some = federation(3).begin()
    sealed = {}
    for number in (1, 2, 3):
        turn = some.turn(number)
        sealed[number] = bytes(some.jobs["client-00"].seal(turn, *some.draw(number)["client-00"]))
        some.round(turn, some.draw(number), b"state %d" % number)
    job = some.job("client-00")
    assert [job.stored(some.turn(number)) for number in (2, 3)] == [sealed[2], sealed[3]]
    with pytest.raises(ProtocolError, match="stale"):
        job.stored(some.turn(1))


def test_rounds_come_in_order_and_no_more_than_agreed(federation):
    some = federation(3, rounds=2).begin()
    job = some.jobs["client-00"]
    for number, stage in ((2, 0), (1, 1)):
        with pytest.raises(ProtocolError, match="out of order"):
            job.stored(some.turn(number, stage=stage))
    for number, stage in ((0, 0), (2 + KEPT + 1, 0), (1, 2), (1, -1)):
        with pytest.raises(ProtocolError, match="beyond rounds = 2 and stages = 2"):
            job.stored(some.turn(number, stage=stage))
    with pytest.raises(ProtocolError, match="beyond"):
        job.begin(2, STATE)


def test_no_stage_is_left_out_or_begun_again(federation):
    some = federation(3, stages=3).begin()
    job = some.jobs["client-00"]
    with pytest.raises(ProtocolError, match="stage 1 comes next"):
        job.begin(2, STATE)
    job.begin(1, STATE)
    with pytest.raises(ProtocolError, match="stage 2 comes next"):
        job.begin(0, STATE)


def test_scores_are_summed_without_a_change(federation):
    some = federation(3, rounds=2).begin()
    some.round(some.turn(1), state=b"after one")
    for which in (LAST, KEPT):
        drawn = some.draw(which)
        opened = some.round(some.turn(2 + which), drawn)
        assert all(not each.mean for each in opened.values())
        expected = sum(scores for _, scores in drawn.values())
        assert all((each.totals == expected).all() for each in opened.values())
    assert bytes(some.job("client-00").state) == b"after one"
    some.begin(1, b"stage two")
    some.round(some.turn(1, stage=1))


def play(some, restart):
    """A run with a smaller list in its second round; `restart` is called between any two acts."""
    told = []
    some.begin()
    for number, attempt, names in ((1, 0, some.names), (2, 1, some.names[:3]), (3, 1, None)):
        names = names or some.names[:3]
        if number == 2:
            restart()
            some.weigh(1, names)
        turn, drawn = some.turn(number, attempt=attempt, members=names), some.draw(number)
        restart()
        sealed = some.seal(turn, drawn)
        restart()
        told += sealed.values()
        data = some.add(turn, sealed)
        for name in some.names:
            some.jobs[name].open(turn, data)
            restart(name)
            mean = some.jobs[name].open(turn, data).mean
            state = b"".join(part.tobytes() for part in mean.values())
            some.jobs[name].settle(state)
            restart(name)
            assert some.jobs[name].is_settled(turn, data)
        told.append(data)
    told += [bytes(job.state) for job in some.jobs.values()]
    return told


@pytest.mark.parametrize("bits", WIDTHS)
def test_a_restart_between_any_two_acts_changes_no_byte(tmp_path, bits):
    shape = replace(SHAPE, lanes=Lanes(bits))
    steady, shaken = (Federation(tmp_path / name, 4, shape=shape) for name in ("steady", "shaken"))

    def restart(name=None):
        for each in [name] if name else shaken.names:
            shaken.jobs[each] = shaken.job(each)

    assert play(steady, lambda name=None: None) == play(shaken, restart)


def test_a_reply_that_was_not_stored_was_never_sent(federation, monkeypatch):
    some = federation(3).begin()
    job, turn, drawn = some.jobs["client-00"], some.turn(1), some.draw()

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job._records, "keep_reply", die)
        with pytest.raises(KeyboardInterrupt):
            job.seal(turn, *drawn["client-00"])
    some.jobs["client-00"] = some.job("client-00")
    some.round(turn, drawn)


def test_nobody_settles_what_was_not_opened(federation):
    some = federation(3).begin()
    with pytest.raises(ProtocolError, match="No sum was opened"):
        some.jobs["client-00"].settle(STATE)


def test_weights_without_labels_are_refused(federation):
    with pytest.raises(ProtocolError, match="nothing to train on"):
        federation(3, weights=np.zeros(3)).begin()


def test_a_turn_before_the_weights_is_refused(federation):
    some = federation(3)
    job = some.jobs["client-00"]
    with pytest.raises(ProtocolError, match="No stage of training has begun"):
        job.stored(some.turn(1))
    job.begin(0, STATE)
    with pytest.raises(ProtocolError, match="weights of no member list"):
        job.stored(some.turn(1))
    job.weigh(0, some.names, 1.0)
    with pytest.raises(ProtocolError, match="before its weights were summed"):
        job.stored(some.turn(1))


def test_other_data_are_not_trained_on_in_the_same_job(federation):
    some = federation(3).begin()
    job = some.job("client-00", data="other data")
    for ask in (
        lambda: job.seal(some.turn(1), *some.draw()["client-00"]),
        lambda: job.weigh(1, some.names, 1.0),
        lambda: job.begin(1, STATE),
    ):
        with pytest.raises(ProtocolError, match="data of 'client-00' changed"):
            ask()
