import pytest

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.sums.training.agreed import Limits
from tests.sums.training.federation import Federation


def test_who_was_left_out_takes_the_sums_and_contributes_no_more(federation):
    some = federation(5).begin()
    some.round(some.turn(1), state=b"one")
    left = some.names[:4]
    some.weigh(1, left)
    turn = some.turn(2, attempt=1, members=left)
    opened = some.round(turn, some.draw(2), b"two")
    assert (opened["client-04"].mean["A"] == opened["client-00"].mean["A"]).all()
    out = some.jobs["client-04"]
    with pytest.raises(ProtocolError, match="left out of the member list"):
        out.stored(some.turn(3, attempt=1, members=left))
    with pytest.raises(ProtocolError, match="left out"):
        out.weigh(2, some.names[2:], 1.0)
    with pytest.raises(ProtocolError, match="left out before"):
        some.jobs["client-03"].weigh(2, (*some.names[1:3], "client-04"), 1.0)
    some.round(some.turn(3, attempt=1, members=left), some.draw(3), b"three")


def test_an_attempt_with_a_missing_member_is_repeated_with_a_smaller_list(federation):
    some = federation(5).begin()
    drawn, left = some.draw(), some.names[1:]
    whole = some.turn(1)
    for name in left[:2]:
        some.jobs[name].seal(whole, *drawn[name])
    some.weigh(1, left)
    opened = some.round(some.turn(1, attempt=1, members=left), drawn)
    assert (opened["client-01"].totals == sum(drawn[name][1] for name in left)).all()


def test_lists_become_smaller_and_no_more_often_than_allowed(federation):
    some = federation(7).begin()
    some.weigh(1, some.names[:6])
    job = some.jobs["client-00"]
    with pytest.raises(ProtocolError, match="only changed for a smaller one"):
        job.weigh(2, some.names[:6], 1.0)
    with pytest.raises(ProtocolError, match="only changed for a smaller one"):
        job.weigh(1, some.names[:5], 1.0)
    with pytest.raises(ProtocolError, match="not sorted"):
        job.weigh(2, some.names[4::-1], 1.0)
    some.weigh(2, some.names[:5])
    with pytest.raises(ConsentError, match="for the 3th time and the policy allows 2"):
        job.weigh(3, some.names[:4], 1.0)


@pytest.mark.parametrize(("count", "floor"), [(3, 0), (5, 4), (4, 4)])
def test_no_list_is_smaller_than_its_floor(federation, count, floor):
    some = federation(count, min_clients=floor).begin()
    least = max(3, floor)
    with pytest.raises(ConsentError, match=f"of {least - 1} members .* {least} are the fewest"):
        some.jobs["client-00"].weigh(1, some.names[: least - 1], 1.0)


def test_a_policy_may_ask_for_more_members(tmp_path):
    with pytest.raises(ConsentError, match=r"4 members .* 5 are .* lower least-members = 5"):
        Federation(tmp_path / "few", 4, limits=Limits(fewest=5))
    some = Federation(tmp_path / "enough", 6, limits=Limits(fewest=5)).begin()
    some.weigh(1, some.names[:5])
    with pytest.raises(ConsentError, match=r"4 members .* lower least-members = 5"):
        some.jobs["client-00"].weigh(2, some.names[:4], 1.0)


def test_two_members_need_the_policy_of_each(tmp_path):
    with pytest.raises(ConsentError, match="two-members"):
        Federation(tmp_path, 2, limits=Limits())
    some = Federation(tmp_path, 2, limits=Limits(fewest=2)).begin()
    some.round(some.turn(1))
    with pytest.raises(ConsentError, match="2 are the fewest"):
        some.jobs["client-00"].weigh(1, ("client-00",), 1.0)
