import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.sums.identity import AgreementKey, Identity, is_signed


def test_a_saved_identity_is_private_and_comes_back(tmp_path):
    identity, path = Identity.generate(), tmp_path / "keys" / "identity.pem"
    identity.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Identity.load(path) == identity


def test_a_file_that_others_may_read_is_refused(tmp_path):
    path = tmp_path / "identity.pem"
    Identity.generate().save(path)
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="mode 0640"):
        Identity.load(path)


def test_an_identity_is_never_overwritten(tmp_path):
    path = tmp_path / "identity.pem"
    first = Identity.generate()
    first.save(path)
    with pytest.raises(ConfigError, match="never overwritten"):
        Identity.generate().save(path)
    assert Identity.load(path) == first


@pytest.mark.parametrize("text", ["", "junk", "a\nb\nc\n"])
def test_junk_is_no_identity(tmp_path, text):
    path = tmp_path / "identity.pem"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="not an identity file"):
        Identity.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.pem"):
        Identity.load(tmp_path / "nowhere.pem")


def test_a_seed_gives_the_same_identity_for_the_same_name_only():
    seed = b"seed" * 4
    assert Identity.from_seed(seed, "a") == Identity.from_seed(seed, "a")
    assert Identity.from_seed(seed, "a") != Identity.from_seed(seed, "b")


def test_private_keys_do_not_print():
    identity = Identity.generate()
    assert identity.signing_key.hex() not in repr(identity)
    assert repr(identity.agreement_key) not in repr(identity)


def test_fingerprint_depends_on_both_keys():
    one, two = Identity.generate(), Identity.generate()
    mixed = Identity(one.signing_key, two.agreement_key)
    assert len({one.fingerprint, two.fingerprint, mixed.fingerprint}) == 3
    assert len(one.fingerprint) == 39


def test_signatures():
    one, two = Identity.generate(), Identity.generate()
    signature = one.sign(b"text")
    assert is_signed(one.signing_public, signature, b"text")
    assert not is_signed(one.signing_public, signature, b"texT")
    assert not is_signed(two.signing_public, signature, b"text")


def test_agreement_is_mutual_and_refuses_degenerate_keys():
    one, two = Identity.generate(), Identity.generate()
    expected = X25519PrivateKey.from_private_bytes(one.agreement_key).exchange(
        X25519PrivateKey.from_private_bytes(two.agreement_key).public_key()
    )
    assert AgreementKey(one.agreement_key).agree(two.agreement_public) == expected
    assert AgreementKey(two.agreement_key).agree(one.agreement_public) == expected
    with pytest.raises(ProtocolError, match="X25519"):
        AgreementKey(one.agreement_key).agree(bytes(32))
