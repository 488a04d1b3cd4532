"""A server that keeps every contribution and subtracts any two: pads used once show nothing.

With `mask` it needs no key. With `ckks` a member helps it, whose keys open single ciphertexts.
"""

import copy
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.ckks import words as ciphered
from fedlap_app.sums.ckks.parameters import CKKS_2048
from fedlap_app.sums.job.live import forget as forget_live

from .scene import RefusedError, is_uniform

VICTIM, HELPER = "bank-01", "bank-02"
MODULUS = {"mask": 2**64, "ckks": 2**CKKS_2048.word_bits}
LEAST_WORDS = 60  # 480 bytes fill 64 bins


@pytest.fixture(params=["mask", "ckks"])
def watched(scene, request):
    """A scene whose helper gives away its keys of every handshake, or of none if it needs none."""
    scene.settings = replace(scene.settings, backend=request.param)
    scene.rings = {}
    honest = scene.ask

    def ask(name, message, **changes):
        reply = honest(name, message, **changes)
        if request.param == "ckks" and (name, message.kind) == (HELPER, "pairs"):
            ring = scene.keys(HELPER, message.job)
            scene.rings[ring.key_id] = ring
        return reply

    scene.ask = ask
    return scene


def readable(scene, name):
    """Place and words of what the server, or it and its helper, read of all contributions."""
    if scene.settings.backend == "mask":
        for (job, step, _), each in scene.contributions(name).items():
            yield from (((job, step), words) for words in each)
        return
    for job, step, header, words in scene.sent(name):
        at = 0
        for this in header.sums:
            form = ciphered.WordForm(CKKS_2048, this.length + SLOTS)
            part, at = words[at : at + form.size // 8], at + form.size // 8
            ring = scene.rings.get(header.key_id)
            if ring is not None and this.recipient in ("", HELPER):
                yield (job, step), opened(ring, name, this.recipient, form, part)


def opened(ring, sender, recipient, form, words):
    """What a single contribution holds for who has the key that it is under."""
    purpose = f"{CKKS_2048.name} {recipient}"
    secret = ring.pair_secret(sender, purpose) if recipient else ring.group_secret(purpose)
    return ciphered.unseal(words.data, form, [secret], lambda key: None)


def difference(one, other, modulus):
    size = min(one.size, other.size)
    if modulus == 2**64:
        return one[:size] - other[:size]
    return (one[:size] + np.uint64(modulus) - other[:size]) % np.uint64(modulus)


def require_uniform(scene, least):
    """Each contribution alone and the difference of any two; gives where one came again."""
    modulus, found, again, short = MODULUS[scene.settings.backend], [], set(), []
    for place, each in readable(scene, VICTIM):
        differences = [difference(each, other, modulus) for other in found]
        if not all(words.any() for words in differences):
            again.add(place)
            continue
        found.append(each)
        for words in (each, *differences):
            if words.size < LEAST_WORDS:
                short.append(words)
            else:
                assert is_uniform(words, modulus)
    assert len(found) >= least
    assert not short or is_uniform(np.concatenate(short), modulus)
    return again


@pytest.mark.parametrize("restarted", [False, True])
def test_the_difference_of_any_two_is_uniform(watched, restarted):
    """Over steps, recipients, restarted processes, unfinished jobs and runs."""
    for hello in ("h1", "h2"):
        coordinator = watched.coordinator(hello)
        while not coordinator.done:
            watched.run("", coordinator=coordinator, rounds=1)
            if restarted:
                forget_live()
    watched.run("h3", rounds=5)  # never finished
    assert not require_uniform(watched, least=8)


def test_the_same_when_one_store_is_rolled_back_at_every_step(watched):
    """A backup of the victim's, from before its card to the last sum; all else goes on."""
    for point in range(6):
        coordinator = watched.run(f"h{point}", rounds=point)
        backup, begun = watched.snapshot(VICTIM), len(watched.log)
        watched.run("", coordinator=coordinator, rounds=3)
        asked = [request for name, request, _ in watched.log[begun:] if name == VICTIM]
        watched.restore(VICTIM, backup)
        with suppress(RefusedError):
            for request in asked:
                watched.ask(VICTIM, request)
    assert require_uniform(watched, least=20), "the same message has the same answer"


def test_the_same_when_all_stores_are_rolled_back_at_once(watched):
    """As a snapshot of a machine does: what is encrypted again gives other sums."""
    for point in range(6):
        coordinator = watched.run(f"h{point}", rounds=point)
        backups = {name: watched.snapshot(name) for name in watched.names}
        again = copy.deepcopy(coordinator)
        watched.run("", coordinator=coordinator, rounds=3)
        for name, backup in backups.items():
            watched.restore(name, backup)
        watched.run("", coordinator=again, rounds=3)
    came_again = require_uniform(watched, least=20)
    if watched.settings.backend == "ckks":  # only what answers the very same message
        assert len(came_again) == len({job for job, _ in came_again}) == 4
