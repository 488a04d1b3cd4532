import pytest

from fedlap_app.settings import parse_settings
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.plan import find_shape
from fedlap_app.studies.planning.values import values_of
from fedlap_app.studies.spectrum import run_spectrum
from fedlap_app.sums.pads import Pads


@pytest.mark.parametrize("clients", [2, 5, 23])
def test_pads_and_numbers_are_those_that_a_run_applies(clients, monkeypatch):
    applied = {"put on": 0, "taken off": 0}
    change = Pads.change

    def counted(self, words, place, recipient, *, add=(), subtract=(), **more):
        opening = recipient == self._keys.me or (not recipient and not add and subtract == ("",))
        way = "taken off" if opening else "put on"
        applied[way] += words.size * (len(add) + len(subtract))
        return change(self, words, place, recipient, add=add, subtract=subtract, **more)

    monkeypatch.setattr(Pads, "change", counted)
    settings = parse_settings(
        {
            "dataset": "banks",
            "accounts": 240,
            "clients": clients,
            "vectors": 2,
            "block": 2,
            "backend": "mask",
        }
    )
    run_spectrum(settings, check=False, dump=None)
    settings, shape = find_shape(settings, None, None)
    values = values_of(Phase(settings.offline_spec, shape))
    assert sum(each.padded for each in values.values()) == applied["put on"]
    assert all(each.sealed >= each.wanted for each in values.values())
