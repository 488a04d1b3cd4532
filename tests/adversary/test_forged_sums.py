"""A server that drops, doubles or alters sums, and tries again until one is taken."""

import resource
from dataclasses import replace

import pytest

from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import HelloReply, Request

from .scene import RefusedError
from .test_disk_full import FINISHED, run_alone

VICTIM = "bank-01"


def flipped(data, at):
    """Other bits in eight bytes: low ones of a ciphertext are noise, its last numbers nothing."""
    changed = bytearray(data)
    for place in range(at, at + 8):
        changed[place] ^= 0x80
    return bytes(changed)


@pytest.mark.parametrize("backend", ["mask", "ckks"])
@pytest.mark.parametrize("field", ["common", "own"])
def test_one_forged_sum_ends_the_job_for_good(scene, backend, field):
    scene.settings = replace(scene.settings, backend=backend)
    coordinator = scene.run("h1", rounds=5)
    honest = coordinator.requests[VICTIM]
    data = getattr(honest, field)
    with pytest.raises(RefusedError):
        scene.ask(VICTIM, replace(honest, **{field: flipped(data, len(data) // 2)}))
    for tried in (honest, replace(honest, **{field: flipped(data, len(data) // 2 + 8)}), honest):
        forget_live()
        with pytest.raises(RefusedError, match="has ended"):
            scene.ask(VICTIM, tried)
    found = HelloReply.unpack(scene.ask(VICTIM, Request("hello", "", 0, b"h2")))
    assert found.open == ()


def test_the_next_run_begins_a_job_of_its_own(scene):
    coordinator = scene.run("h1", rounds=5)
    honest = coordinator.requests[VICTIM]
    with pytest.raises(RefusedError):
        scene.ask(VICTIM, replace(honest, common=flipped(honest.common, len(honest.common) - 16)))
    again = scene.run("h2")
    assert again.done
    assert not again.resumed


def test_a_full_disk_gives_no_second_try(scene):
    """What ends the job cannot be written; then its keys go, for which there is always room."""
    coordinator = scene.run("h1", rounds=5)
    honest = coordinator.requests[VICTIM]
    forged = replace(honest, common=flipped(honest.common, len(honest.common) - 40))

    def on_a_full_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        for tried in (forged, forged, honest):
            forget_live()
            with pytest.raises(RefusedError, match=r"disk is full|not known here"):
                scene.ask(VICTIM, tried)

    status, said = run_alone(on_a_full_disk)
    assert status == FINISHED, said
    forget_live()
    with pytest.raises(RefusedError, match=r"not known here|has ended"):
        scene.ask(VICTIM, honest)
    begin = next(r for n, r, _ in scene.log if n == VICTIM and r.kind == "cards")
    with pytest.raises(RefusedError):
        scene.ask(VICTIM, begin)
    assert scene.run("h2").done


def test_sums_of_another_step_or_member_end_the_job(scene):
    coordinator = scene.run("h1", rounds=5)
    mine, other = coordinator.requests[VICTIM], coordinator.requests["bank-00"]
    with pytest.raises(RefusedError):
        scene.ask(VICTIM, replace(mine, own=other.own))
    with pytest.raises(RefusedError, match="has ended"):
        scene.ask(VICTIM, mine)
