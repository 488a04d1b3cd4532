import pytest

from fedlap_app.settings import parse_settings
from fedlap_app.studies.offline_bars import bars_of
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import equal_parts
from fedlap_app.studies.planning.values import values_of


def test_ratios_and_nanoseconds_follow_from_the_seconds():
    settings = parse_settings({"clients": 4, "vectors": 20})
    phase = Phase(settings.offline_spec, equal_parts(1000, 4))
    padded = sum(each.padded for each in values_of(phase).values())
    seconds = {"bare": 1.0, "plain": 2.5, "mask": 3.0 + 9e-9 * padded}
    rows = [
        {"backend": name, "cpu_seconds": value, "cpu_seconds_iteration": value / 2}
        for name, value in seconds.items()
    ]
    bars = {bar["what"]: bar for bar in bars_of({"mask": phase}, rows)}
    assert bars["plain / bare"]["value"] == 2.5
    assert bars["plain / bare"]["met"]
    assert bars["plain / bare, after the handshake"]["value"] == 1.25
    assert bars["mask - 1.2 plain, ns a value and pad"]["value"] == pytest.approx(9.0)
    assert bars["mask - 1.2 plain, ns a value and pad"]["met"] is False
