"""A server that makes a client begin a job a second time, to have pads used twice."""

import itertools
import json
import time
from dataclasses import replace

import pytest

from fedlap_app.errors import ConsentError
from fedlap_app.sums.card import Roster, read_card
from fedlap_app.sums.job.answered import FORM
from fedlap_app.sums.job.begun import Begun
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import Request

from .scene import RefusedError, cards_request, is_uniform

VICTIM = "bank-01"


def forget_job(scene, name, job):
    """What happens to the oldest jobs of a store: their files go."""
    forget_live()
    for path in scene.store(name).glob(f"offline-{job}-*"):
        path.unlink()


def cards_of(scene, hello, fresh, **changes):
    """Cards for a hello; those of all but the victim are asked for anew."""
    hellos = {name: hello if name == VICTIM else f"{hello}{fresh}" for name in scene.names}
    cards = [scene.card(name, each, **changes) for name, each in hellos.items()]
    roster = Roster(tuple(sorted(map(read_card, cards), key=lambda card: card.name)))
    return cards, roster.job


def test_one_card_begins_one_job(scene):
    first = scene.run("h1", rounds=3)
    for fresh in "abcd":
        cards, job = cards_of(scene, "h1", fresh)
        assert job != first.request.job
        with pytest.raises(RefusedError, match=r"begins no other|begun a job before"):
            scene.ask(VICTIM, cards_request(job, "h1", cards))


def test_of_two_pending_cards_the_newer_one_begins(scene):
    """Two hellos at once: the first card can begin nothing any more, whenever its CARDS come."""
    old, old_job = cards_of(scene, "h1", "x")
    new, new_job = cards_of(scene, "h2", "y")
    for _ in range(2):
        with pytest.raises(RefusedError, match="belong to another hello"):
            scene.ask(VICTIM, cards_request(old_job, "h1", old))
        with pytest.raises(RefusedError, match="My own card is not among"):
            scene.ask(VICTIM, cards_request(old_job, "h2", old))
        scene.ask(VICTIM, cards_request(new_job, "h2", new))
    assert [path.name.split("-")[1] for path in scene.store(VICTIM).glob("*answered-*")] == [
        new_job
    ]


@pytest.mark.parametrize("at", [-1, 14])
def test_cards_with_another_filling_are_not_taken_again(scene, at):
    """A copy that differs in what fills it up would be another request of the same content."""
    cards, job = cards_of(scene, "h1", "x")
    honest = cards_request(job, "h1", cards)
    altered = bytearray(honest.common)
    assert altered[at] == 0
    altered[at] = 1
    for _ in range(2):
        with pytest.raises(RefusedError, match=r"not filled up with zeros|comes again with other"):
            scene.ask(VICTIM, Request("cards", job, 0, bytes(altered)))
        scene.ask(VICTIM, honest)


@pytest.mark.parametrize("rounds", [2, 3, 5])
def test_a_forgotten_job_never_starts_again(scene, rounds):
    scene.run("h1", rounds=rounds)
    begin = next(r for n, r, _ in scene.log if n == VICTIM and r.kind == "cards")
    forget_job(scene, VICTIM, begin.job)
    with pytest.raises(RefusedError, match="begun a job before"):
        scene.ask(VICTIM, begin)


def test_a_card_that_is_put_back_begins_nothing(scene):
    scene.card(VICTIM, "h1")
    card = (scene.store(VICTIM) / "offline-card").read_bytes()
    scene.run("h1", rounds=4)
    begin = next(r for n, r, _ in scene.log if n == VICTIM and r.kind == "cards")
    forget_job(scene, VICTIM, begin.job)
    (scene.store(VICTIM) / "offline-card").write_bytes(card)
    with pytest.raises(RefusedError, match="begun a job before"):
        scene.ask(VICTIM, begin)


@pytest.mark.parametrize("point", [0, 1, 2, 3])
def test_a_store_that_is_rolled_back_draws_other_pads(scene, point):
    """From a backup of any moment, every number that leaves is under pads that no other is."""
    coordinator = scene.coordinator("h1")
    scene.run("", coordinator=coordinator, rounds=point)
    copies = {name: scene.snapshot(name) for name in scene.names}
    requests = dict(coordinator.requests)
    scene.run("", coordinator=coordinator, rounds=4)
    for name in scene.names:
        scene.restore(name, copies[name])
    if point < 2:
        again = scene.coordinator("h1")
        scene.run("", coordinator=again, rounds=point + 4)
    else:  # the pads are agreed already: the same requests give the same bytes, or nothing
        for name, request in requests.items():
            scene.ask(name, request)
    for sent in scene.contributions(VICTIM).values():
        for one, other in itertools.combinations(sent, 2):
            same = one.shape == other.shape and (one == other).all()
            assert same or is_uniform(one - other)
            assert same == (point >= 2)


def test_jobs_of_a_day_are_counted(scene):
    scene.add(VICTIM, "policy", "jobs-a-day = 2")
    scene.run("h1", rounds=3)
    scene.run("h2", rounds=3)
    with pytest.raises(RefusedError, match="jobs-a-day = 2 is reached"):
        scene.run("h3", rounds=3)
    assert scene.contributions(VICTIM).keys().__len__() == 2


def test_jobs_for_training_runs_are_counted_too(scene):
    """Each leaves a ledger: without a limit their folders would fill the disk."""
    scene.settings = replace(scene.settings, training_backend="mask")
    scene.add(VICTIM, "policy", "runs-a-day = 1", "jobs-a-day = 0")
    for number in range(4):
        cards, job = cards_of(scene, f"h{number}", str(number), program="training")
        scene.ask(VICTIM, cards_request(job, f"h{number}", cards), program="training")
    folders = set((scene.store(VICTIM) / "jobs").iterdir())
    cards, job = cards_of(scene, "h4", "4", program="training")
    with pytest.raises(RefusedError, match="runs-a-day = 1, 4 jobs for each, is reached"):
        scene.ask(VICTIM, cards_request(job, "h4", cards), program="training")
    assert set((scene.store(VICTIM) / "jobs").iterdir()) == folders


@pytest.mark.parametrize("hours", [-1, -30, -24 * 4000])
def test_a_clock_that_is_set_back_forgets_no_job(scene, monkeypatch, hours):
    now = time.time
    scene.add(VICTIM, "policy", "jobs-a-day = 2")
    scene.run("h1", rounds=3)
    scene.run("h2", rounds=3)
    monkeypatch.setattr(time, "time", lambda: now() + 3600 * hours)
    for hello in ("h3", "h4"):
        with pytest.raises(RefusedError, match="jobs-a-day = 2 is reached"):
            scene.run(hello, rounds=3)
    monkeypatch.setattr(time, "time", lambda: now() + 3600 * 25)
    scene.run("h5", rounds=3)


def test_a_large_ration_of_jobs_is_kept_to(tmp_path):
    begun, most = Begun(tmp_path, durable=False), 10_002
    (tmp_path / "begun.json").write_text(
        json.dumps({"issued": 0, "used": 0, "times": [time.time()] * (most - 1)})
    )
    begun.count(most)
    with pytest.raises(ConsentError, match="jobs-a-day = 10002 is reached"):
        begun.count(most)


def test_vectors_are_counted_over_all_jobs(scene):
    scene.add(VICTIM, "consent", "most-vectors = 12")
    scene.run("h1")
    scene.run("h2", rounds=5)
    with pytest.raises(RefusedError, match="most-vectors = 12 does not allow"):
        scene.run("h3")
    counted = json.loads((scene.store(VICTIM) / "consent.json").read_text())["graphs"]
    (graph,) = counted.values()
    sent = {(job, step) for job, step, _ in scene.contributions(VICTIM)}
    assert graph["before"] + sum(graph["jobs"].values()) >= 3 * (len(sent) - 3)


def test_a_job_begins_at_its_first_step(scene):
    cards, job = cards_of(scene, "h1", "x")
    with pytest.raises(RefusedError, match="where step 0 was expected"):
        scene.ask(VICTIM, Request("cards", job, 3, cards_request(job, "h1", cards).common))


def test_a_job_of_another_release_ends_with_a_remedy_and_its_basis_stays(scene):
    scene.run("h0")
    scene.run("h1", rounds=4)
    job = scene.log[-1][1].job
    for path in scene.store(VICTIM).glob(f"offline-{job}-answered-*"):
        data = path.read_bytes()
        assert b'"form": %d' % FORM in data
        path.write_bytes(data.replace(b'"form": %d' % FORM, b'"form": %d' % (FORM - 1)))
    forget_live()
    with pytest.raises(RefusedError, match=r"begun by another release .* start the run again"):
        scene.ask(VICTIM, Request("sums", job, 3, b"x", b"y"))
    assert list(scene.store(VICTIM).glob("basis-*"))
