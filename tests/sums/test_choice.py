import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.policy import BACKENDS
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.header import Place


def test_unknown_names_are_refused_with_the_choices(rings):
    with pytest.raises(ConfigError, match="choose one of mask, plain"):
        make_backend("rot13", rings(3)[0])
    with pytest.raises(ConfigError, match="choose one of q44, q36"):
        make_backend("mask", rings(3)[0], profile="q99")


@pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")
@pytest.mark.parametrize("name", BACKENDS)
def test_the_header_of_a_sum_tells_the_server_how_to_add(rings, name):
    backend = make_backend(name, rings(3)[0])
    header = backend.small_header(Place("krylov"), length=5)
    assert make_accumulator(header, backend.senders).missing("") == rings(3)[0].members
