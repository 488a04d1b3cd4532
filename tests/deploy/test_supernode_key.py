import stat
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from flwr.cli.supernode.register import try_load_public_key
from flwr.supernode.cli.flower_supernode import (
    _parse_args_run_supernode,
    _try_setup_client_authentication,
)

from fedlap_app.deploy.supernode_key import (
    check_public_line,
    key_fingerprint,
    make_supernode_key,
    private_to_public,
)
from fedlap_app.errors import ConfigError


@pytest.fixture
def pair(tmp_path):
    private, public = tmp_path / "keys" / "supernode", tmp_path / "supernode.pub"
    make_supernode_key(private, public, "bank-a")
    return private, public


def test_flower_reads_both_files_and_they_belong_together(pair):
    private, public = pair
    args = _parse_args_run_supernode().parse_args(["--auth-supernode-private-key", str(private)])
    key, own = _try_setup_client_authentication(args)
    assert isinstance(key.curve, ec.SECP384R1)
    registered = serialization.load_pem_public_key(try_load_public_key(public))
    assert registered == own


def test_only_the_owner_can_read_the_private_key(pair):
    assert stat.S_IMODE(pair[0].stat().st_mode) == 0o600


def test_the_fingerprint_is_that_of_ssh_keygen(pair):
    private, public = pair
    try:
        shown = subprocess.run(
            ["ssh-keygen", "-l", "-f", str(public)], capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError:
        pytest.skip("ssh-keygen is not installed")
    assert shown.split()[:2] == ["384", key_fingerprint(private_to_public(private))]


def test_what_is_no_p384_key_is_refused(tmp_path):
    small = ec.generate_private_key(ec.SECP256R1()).public_key()
    other = ed25519.Ed25519PrivateKey.generate().public_key()
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    for line in (small.public_bytes(*form).decode(), other.public_bytes(*form).decode(), "junk"):
        with pytest.raises(ConfigError, match=r"bank-a is no ECDSA P-384 key"):
            check_public_line(line, "bank-a")
    (tmp_path / "key").write_text("junk")
    with pytest.raises(ConfigError, match="is no SuperNode key"):
        private_to_public(tmp_path / "key")
