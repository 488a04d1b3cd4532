"""A server that asks one organisation at the same time in several processes."""

import numpy as np
import pytest

from fedlap_app.flower.client.organisation import _organisations
from fedlap_app.sums.card import Roster, read_card
from fedlap_app.sums.job.live import forget as forget_live

from .dishonest import Coordinator, always, scores_of, settings_of, write_organisations
from .scene import RefusedError, cards_request
from .test_disk_full import FINISHED, child, outcome

VICTIM = "bank-01"
AT_ONCE = 3


class AnsweredError(Exception):
    """An attack had an answer."""


def answered(works):
    """How many of some attempts that run at the same time have an answer."""
    running = [child(work) for work in works]
    ends = [outcome(*each) for each in running]
    for status, said in ends:
        assert status == FINISHED or "AnsweredError" in said, said
    return sum("AnsweredError" in said for _, said in ends)


@pytest.mark.parametrize("kind", ["train", "keep"])
def test_many_models_at_once_for_one_place_in_a_run(tmp_path, kind):
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    server = Coordinator(folders, settings_of())
    assert not isinstance(server.join(), str)
    if kind != "train":
        assert scores_of(server.train(always(subgraphs[0], 0, 7.0))) is not None

    def question(strength):
        def ask():
            _organisations.clear()  # a process of its own has a lock of its own
            if scores_of(getattr(server, kind)(always(subgraphs[0], 0, strength))) is not None:
                raise AnsweredError

        return ask

    assert answered([question(np.float32(each)) for each in range(1, AT_ONCE + 1)]) == 1


def test_one_card_in_many_jobs_at_once(scene):
    """Each job has the same card of the victim and other cards of the others."""
    requests = []
    for fresh in range(AT_ONCE):
        cards = [scene.card(n, "h1" if n == VICTIM else f"h1-{fresh}") for n in scene.names]
        roster = Roster(tuple(sorted(map(read_card, cards), key=lambda card: card.name)))
        requests.append(cards_request(roster.job, "h1", cards))

    def begin(request):
        def ask():
            forget_live()
            _organisations.clear()  # a process of its own has a lock of its own
            try:
                scene.ask(VICTIM, request)
            except RefusedError:
                return
            raise AnsweredError

        return ask

    assert answered([begin(request) for request in requests]) == 1
