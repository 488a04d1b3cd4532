"""Dying anywhere: a process that starts again gives the same bytes and the same basis."""

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.newest import Newest
from fedlap_app.sums.job import bases, columns
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import HelloReply, Request
from fedlap_app.sums.job.secrets import stored_secrets

from .conftest import Deadly, KilledError

SOLVERS = ["block-lanczos", "dcgs2"]


def undisturbed(make_phase, **spec):
    phase = make_phase(**spec)
    phase.run()
    return phase


def same(first, second):
    """Whether two phases gave the same bits."""
    pairs = zip(first.gathered(), second.gathered(), strict=True)
    return all(np.array_equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("backend", ["mask", "plain"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("most", [0, 500, columns.MOST])
def test_a_new_process_for_every_message(make_phase, monkeypatch, backend, solver, most):
    phase = make_phase(backend=backend, solver=solver)

    def fresh(member, request):
        forget_live()
        return member.answer(request)

    monkeypatch.setattr(columns, "MOST", most)
    phase.run(around=fresh)
    expected = undisturbed(make_phase, backend=backend, solver=solver)
    assert same(phase, expected)
    assert [r for *_, r in phase.log] == [r for *_, r in expected.log]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("method", ["JobFiles.write", "Newest._fill", "Newest._declare"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_client_killed_at_every_write(make_phase, monkeypatch, moment, method, solver):
    """Each write of each member kills the process once, just before or just after it."""
    expected = undisturbed(make_phase, solver=solver)
    owner, name = method.split(".")
    owner = {"JobFiles": JobFiles, "Newest": Newest}[owner]
    deadly = Deadly(monkeypatch, owner, name, moment)
    phase = make_phase(solver=solver)
    phase.run(around=deadly.answer)
    assert len(deadly.died) >= (3 if owner is JobFiles else 21)
    assert same(phase, expected)
    assert [r for *_, r in phase.log] == [r for *_, r in expected.log]


@pytest.mark.parametrize("method", ["_fill", "_declare"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_client_killed_between_its_columns_and_its_state(make_phase, monkeypatch, method, solver):
    """Columns of Q and Z that went to their file are written again."""
    monkeypatch.setattr(columns, "MOST", 0)
    expected = undisturbed(make_phase, solver=solver)
    phase = make_phase(solver=solver)

    def torn(member, request):
        if request.kind == "sums" and request.step > 3:
            with monkeypatch.context() as patch:
                patch.setattr(Newest, method, _raise)
                with pytest.raises(KilledError):
                    member.answer(request)
            forget_live()
        return member.answer(request)

    phase.run(around=torn)
    assert same(phase, expected)


def _raise(*_, **__):
    raise KilledError


def test_a_client_killed_while_it_saves_the_basis(make_phase, monkeypatch):
    expected = undisturbed(make_phase)
    phase = make_phase()
    saved = bases.Bases.save

    def torn(self, basis):
        saved(self, basis)
        raise KilledError

    def restarted(member, request):
        if request.kind == "share":
            with monkeypatch.context() as patch:
                patch.setattr(bases.Bases, "save", torn)
                with pytest.raises(KilledError):
                    member.answer(request)
            forget_live()
        return member.answer(request)

    phase.run(around=restarted)
    assert same(phase, expected)


@pytest.mark.parametrize("hide_topology", [True, False])
@pytest.mark.parametrize("rounds", range(1, 10))
def test_a_server_killed_after_any_round_goes_on(make_phase, rounds, hide_topology):
    expected = undisturbed(make_phase, hide_topology=hide_topology)
    phase = make_phase(hide_topology=hide_topology)
    phase.run(rounds=rounds)
    forget_live()
    second = phase.run()
    assert second.resumed == (2 <= rounds < 9)
    assert second.reused == (rounds == 9)
    assert same(phase, expected)


def test_a_server_killed_in_the_middle_of_a_round_goes_on(make_phase):
    expected = undisturbed(make_phase)
    phase = make_phase()
    seen = []

    def dying(member, request):
        reply = member.answer(request)
        seen.append(request)
        if len(seen) == 14:
            raise KilledError
        return reply

    with pytest.raises(KilledError):
        phase.run(around=dying)
    second = phase.run()
    assert second.resumed
    assert same(phase, expected)
    kinds = [request.kind for name, request, _ in phase.log if name == "org-00"]
    assert kinds.count("cards") == 1


def test_without_resume_the_job_starts_again(make_phase):
    expected = undisturbed(make_phase)
    phase = make_phase()
    phase.run(rounds=5)
    assert not phase.run(resume=False).resumed
    assert same(phase, expected)


def test_other_settings_do_not_resume(make_phase):
    phase = make_phase()
    phase.run(rounds=5)
    other = make_phase(rank=3)
    other.root = phase.root
    assert not other.run().resumed
    assert other.gathered()[0].shape[1] == 3


def test_changed_data_does_not_resume(make_phase):
    phase = make_phase()
    phase.run(rounds=5)
    other = make_phase(graph={"seed": 5})
    other.root = phase.root
    assert not other.run().resumed


def test_data_that_changes_during_a_job_is_refused(make_phase):
    phase, other = make_phase(), make_phase(graph={"seed": 5})
    coordinator = phase.run(rounds=5)
    other.root = phase.root
    member = other.members["org-01"]
    with pytest.raises(ProtocolError, match="changed during job"):
        member.answer(coordinator.requests["org-01"])


def test_a_lost_store_needs_a_new_job(make_phase):
    import shutil

    expected = undisturbed(make_phase)
    phase = make_phase()
    coordinator = phase.run(rounds=5)
    shutil.rmtree(phase.root / "org-01")
    with pytest.raises(ProtocolError, match="not known here"):
        phase.members["org-01"].answer(coordinator.requests["org-01"])
    assert not phase.run().resumed
    assert same(phase, expected)


class TestRequests:
    """Requests that come again, too late, too early or changed."""

    @pytest.fixture
    def scene(self, make_phase):
        phase = make_phase()
        coordinator = phase.run(rounds=6)
        answered = [(request, reply) for name, request, reply in phase.log if name == "org-01"]
        return phase.members["org-01"], coordinator.requests["org-01"], answered

    def test_a_repeated_request_gets_the_stored_bytes(self, scene):
        member, following, answered = scene
        request, reply = answered[-1]
        assert bytes(member.answer(request)) == reply
        forget_live()
        assert bytes(member.answer(request)) == reply
        member.answer(following)
        assert bytes(member.answer(following)) == bytes(member.answer(following))

    def test_a_stale_request_is_refused(self, scene):
        member, following, answered = scene
        for request, _ in answered[1:-1]:
            with pytest.raises(ProtocolError, match="stale"):
                member.answer(request)
        member.answer(following)
        with pytest.raises(ProtocolError, match="stale"):
            member.answer(answered[-1][0])

    def test_a_premature_request_is_refused(self, scene):
        member, following, _ = scene
        skipped = Request("sums", following.job, following.step + 1, following.common)
        with pytest.raises(ProtocolError, match="out of order"):
            member.answer(skipped)

    @pytest.mark.parametrize("field", ["common", "own"])
    def test_an_altered_request_is_refused(self, scene, field):
        from dataclasses import replace

        member, following, answered = scene
        request = answered[-1][0]
        data = bytearray(getattr(request, field))
        data[len(data) // 2] ^= 1
        with pytest.raises(ProtocolError, match="comes again with other content"):
            member.answer(replace(request, **{field: bytes(data)}))
        # What was refused has changed nothing.
        assert member.answer(following)

    @pytest.mark.parametrize("field", ["common", "own"])
    def test_a_refused_sum_ends_the_job(self, make_phase, scene, field):
        from dataclasses import replace

        member, following, _ = scene
        data = bytearray(getattr(following, field))
        data[len(data) // 2] ^= 1
        with pytest.raises(ProtocolError) as refused:
            member.answer(replace(following, **{field: bytes(data)}))
        for _ in range(2):
            with pytest.raises(ProtocolError, match="has ended") as again:
                member.answer(following)
            assert str(refused.value) in str(again.value)
            forget_live()
        assert HelloReply.unpack(member.answer(Request("hello", "", 0, b"next"))).open == ()

    def test_another_kind_at_the_same_place_is_refused(self, scene):
        member, following, _ = scene
        other = Request("share", following.job, following.step, following.common, following.own)
        with pytest.raises(ProtocolError, match="asks for 'share'"):
            member.answer(other)

    def test_an_unknown_job_is_refused(self, scene):
        member, following, _ = scene
        other = Request("sums", "00" * 16, following.step, following.common, following.own)
        with pytest.raises(ProtocolError, match="not known here"):
            member.answer(other)
        with pytest.raises(ProtocolError, match="no job id"):
            member.answer(Request("sums", "../../x", 3))

    def test_cards_of_an_old_hello_are_refused(self, scene):
        member, _, answered = scene
        member.answer(Request("hello", "", 0, b"other"))
        with pytest.raises(ProtocolError, match=r"stale|another hello"):
            member.answer(answered[1][0])


class TestReuse:
    def test_a_finished_basis_is_reused_without_products(self, make_phase):
        phase = make_phase()
        phase.run()
        before = len(phase.log)
        second = phase.run()
        assert second.reused
        assert {request.kind for _, request, _ in phase.log[before:]} == {"hello", "reuse"}

    def test_a_refreshed_basis_of_a_simulation_is_computed_again_and_the_same(self, make_phase):
        phase = make_phase()
        phase.run()
        first = phase.gathered()[0].copy()
        before = len(phase.log)
        assert not phase.run(refresh=True).reused
        assert "sums" in {request.kind for _, request, _ in phase.log[before:]}
        assert np.array_equal(first, phase.gathered()[0])
        assert phase.run().reused
        assert np.array_equal(first, phase.gathered()[0])

    def test_all_must_hold_the_same_job(self, make_phase):
        phase = make_phase()
        phase.run()
        for path in (phase.root / "org-00").glob("basis-*"):
            path.unlink()
        assert not phase.run().reused
        assert phase.run().reused

    def test_other_members_do_not_reuse(self, make_phase):
        phase = make_phase()
        phase.run()
        renamed = make_phase(seed=3)  # other identities
        renamed.root = phase.root
        assert not renamed.run().reused

    def test_old_bases_and_jobs_are_deleted(self, make_phase):
        phase = make_phase()
        for rank in range(1, 8):
            other = make_phase(rank=rank)
            other.root = phase.root
            other.run()
        assert len(list((phase.root / "org-00").glob("basis-*"))) == bases.KEPT
        assert len(phase.members["org-00"].party.jobs()) <= 4


class TestDeployment:
    """With secrets from files instead of a seed."""

    @pytest.fixture
    def phase(self, make_phase, tmp_path):
        return make_phase(
            secrets=lambda name: stored_secrets(tmp_path / "keys" / name, {}, trust=True)
        )

    def test_jobs_are_never_used_twice(self, phase):
        first = phase.run(rounds=3).request.job
        second = phase.run(resume=False).request.job
        assert first != second

    def test_a_killed_server_resumes_the_same_job(self, phase):
        first = phase.run(rounds=4).request.job
        forget_live()
        second = phase.run()
        assert second.resumed
        assert second.request.job == first
        U, _ = phase.gathered()
        assert np.linalg.norm(np.eye(12) - U.T @ U, 2) < 1e-9

    def test_keys_are_gone_when_the_job_is_over(self, phase):
        phase.run()
        left = {path.name for path in (phase.root / "org-00").iterdir()}
        assert not [name for name in left if "columns" in name]
        assert len([name for name in left if "answered" in name]) == 1
        assert not (phase.root / "org-00" / "offline-card").exists()

    def test_unknown_organisations_are_refused_without_trust(self, make_phase, tmp_path):
        phase = make_phase(
            secrets=lambda name: stored_secrets(tmp_path / "keys" / name, {}, trust=False)
        )
        with pytest.raises(ProtocolError, match="is not pinned"):
            phase.run()

    def test_pinned_organisations_are_accepted(self, make_phase, tmp_path):
        folder = tmp_path / "keys"
        names = [f"org-{i:02d}" for i in range(3)]
        marks = {n: stored_secrets(folder / n, {}, trust=False).identity.fingerprint for n in names}
        phase = make_phase(secrets=lambda name: stored_secrets(folder / name, marks, trust=False))
        assert phase.run().done

    def test_another_identity_than_the_first_one_is_refused(self, phase, tmp_path):
        phase.run()
        (tmp_path / "keys" / "org-02" / "identity").unlink()
        with pytest.raises(ProtocolError, match="is pinned"):
            phase.run()

    def test_files_with_secrets_are_private(self, phase, tmp_path):
        phase.run(rounds=4)
        roots = [tmp_path / "keys" / "org-00", phase.root / "org-00"]
        files = [p for root in roots for p in root.rglob("*") if p.is_file()]
        assert {"identity", "secret", "peers.json"} <= {p.name for p in files}
        assert sum("answered" in p.name for p in files) == 2
        assert all(path.stat().st_mode & 0o077 == 0 for path in files)
