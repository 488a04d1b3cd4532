import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.sums.ckks.backend import CkksBackend
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.parameters import PARAMETERS, Parameters, load_seal

# Bits of the modulus at 128 bits of security, from the HomomorphicEncryption.org standard.
STANDARD = {2048: 54, 4096: 109}


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_the_modulus_stays_within_the_standard(parameters):
    assert parameters.modulus.bit_length() == parameters.bits <= STANDARD[parameters.degree]
    assert parameters.modulus % (2 * parameters.degree) == 1
    seal = load_seal()
    assert (
        seal.CoeffModulus.MaxBitCount(parameters.degree, seal.SEC_LEVEL_TYPE.TC128)
        == (STANDARD[parameters.degree])
    )
    assert not parameters.context.using_keyswitching()


def test_one_bit_more_is_refused():
    with pytest.raises(ConfigError, match="128 bits of security"):
        _ = Parameters("weak", 2048, 55, 44).context


def test_limits_and_errors():
    facts = CkksBackend
    assert facts.limit("ckks-2048") == 512.0
    assert facts.limit("ckks-4096") == 32_768.0
    assert facts.noise("ckks-2048", 10) < 3e-10
    for chosen in PARAMETERS.values():
        assert Coefficients(chosen).most_contributors >= 240
