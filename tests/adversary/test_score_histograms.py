"""Histograms tell the labels of a split, one model after the other: they need a policy's word."""

import numpy as np

from fedlap_app.flower.records import numbers
from fedlap_app.methods.scores import Layout, unpack_all
from fedlap_app.models.options import SCORE_BINS
from tests.adversary.dishonest import (
    Coordinator,
    always,
    settings_of,
    write_organisations,
)


def test_no_class_counts_of_a_split(tmp_path):
    folders, _ = write_organisations(tmp_path / "orgs")
    refused = Coordinator(folders, settings_of(metric="roc-auc")).join()
    assert isinstance(refused, str)
    assert "(score-histograms)" in refused


def test_a_policy_that_allows_it_shows_why_it_is_off(tmp_path):
    folders, subgraphs = write_organisations(tmp_path / "orgs", ["score-histograms = true"])
    part = subgraphs[0]
    server = Coordinator(folders, settings_of(metric="roc-auc"))
    assert not isinstance(server.join(), str)
    answer = numbers(server.train(always(part, 0)), "scores")
    found = unpack_all(answer, Layout(part.num_classes, SCORE_BINS))[0]["test-histogram"]
    counts = np.bincount(part.labels[part.test_mask], minlength=part.num_classes)
    assert found[1].sum(axis=1).tolist() == counts.tolist()
