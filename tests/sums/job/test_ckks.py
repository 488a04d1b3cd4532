"""The offline phase with ciphertexts: what the server sees, and dying anywhere."""

import numpy as np
import pytest

from fedlap_app.store.packing import unpack
from fedlap_app.sums.backend import SumBackend
from fedlap_app.sums.ckks import keys, tenseal_contexts
from fedlap_app.sums.header import Header
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.secrets import stored_secrets
from fedlap_app.sums.keyring import KeyRing

from .conftest import random_parts

GRAPH = {"nodes": 120, "edges": 400, "clients": 4}


def subspace(phase):
    U, _ = phase.gathered()
    return U @ U.T


def test_the_basis_is_that_of_exact_sums(make_phase):
    found, exact = make_phase(graph=GRAPH, backend="ckks"), make_phase(graph=GRAPH)
    for phase in (found, exact):
        phase.run()
    assert np.linalg.norm(subspace(found) - subspace(exact), 2) < 1e-7
    assert next(iter(found.bases().values())).certificate.orthogonality < 1e-7


def test_the_same_secrets_give_the_same_bits(make_phase):
    """Errors of encryption differ from run to run, and rounding takes them off."""
    phases = [make_phase(graph=GRAPH, backend="ckks") for _ in range(2)]
    for phase in phases:
        phase.run()
    one, other = (phase.gathered()[0] for phase in phases)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("solver", ["block-lanczos", "dcgs2", "arnoldi"])
@pytest.mark.parametrize("profile", ["ckks-2048", "ckks-4096", "tenseal-default"])
def test_every_solver_with_every_profile(make_phase, solver, profile):
    small = {"graph": {"nodes": 30, "edges": 80, "clients": 3}, "solver": solver, "vectors": 6}
    found = make_phase(**small, backend="ckks", profile=profile)
    exact = make_phase(**small)
    for phase in (found, exact):
        phase.run()
    assert np.linalg.norm(subspace(found) - subspace(exact), 2) < 1e-5
    np.testing.assert_allclose(found.gathered()[1], exact.gathered()[1], atol=1e-6)


@pytest.mark.parametrize("profile", ["", "tenseal-default"])
def test_a_new_process_for_every_message(make_phase, profile):
    """Keys and contexts come from the store; nothing of an earlier message is in memory."""
    phase = make_phase(graph=GRAPH, backend="ckks", profile=profile)

    def forget():
        forget_live()
        caches = (keys.secret_key, keys.symmetric_encryptor, keys.decryptor)
        contexts = (tenseal_contexts.encrypting, tenseal_contexts.encrypting_for_all)
        for cache in (*caches, *contexts, tenseal_contexts.decrypting):
            cache.cache_clear()

    def fresh(member, request):
        forget()
        reply = bytes(phase.member(member.party.subgraph).answer(request))
        forget()
        # The same request gets the stored bytes, although ciphertexts are never made twice alike.
        assert bytes(member.answer(request)) == reply
        return reply

    phase.run(around=fresh)
    exact = make_phase(graph=GRAPH)
    exact.run()
    assert np.linalg.norm(subspace(phase) - subspace(exact), 2) < 1e-6


def test_a_server_that_starts_again_goes_on(make_phase):
    phase = make_phase(graph=GRAPH, backend="ckks")
    phase.run(rounds=5)
    forget_live()
    again = phase.run()
    assert again.resumed
    assert again.done


def test_real_secrets(make_phase, tmp_path):
    phase = make_phase(
        graph=GRAPH,
        backend="ckks",
        secrets=lambda name: stored_secrets(tmp_path / name, {}, trust=True),
    )
    phase.run()
    assert next(iter(phase.bases().values())).certificate.orthogonality < 1e-6


def seen(phase):
    """Order, kinds, lengths and headers of all that passes the server."""
    found = []
    for name, request, reply in phase.log:
        found.append((name, request.kind, len(request.common), len(request.own), len(reply)))
        for part in (request.common, request.own, *unpack(reply)):
            try:
                header = Header.unpack(part)[0]
            except Exception:
                continue
            found.append(header._replace(job="", members="", key_id=""))
    return found


@pytest.mark.parametrize("profile", ["", "tenseal-default"])
def test_two_graphs_of_equal_sizes_look_alike(make_phase, profile):
    """Other edges, even other numbers of edges between members, and the same view."""
    views = []
    for edges, seed in ((400, 0), (250, 1)):
        parts = random_parts(nodes=120, clients=4, edges=edges, seed=seed)
        phase = make_phase(parts=parts, backend="ckks", profile=profile)
        phase.run()
        views.append(seen(phase))
    assert len(views[0]) > 60
    assert views[0] == views[1]


@pytest.fixture
def recorded(make_phase, monkeypatch):
    plain = []
    seal, opened = SumBackend.seal_sheet, SumBackend.open

    def sealing(self, sheet, **options):
        plain.extend(np.array(room) for room in sheet.rooms.values())
        return seal(self, sheet, **options)

    def opening(self, data, header, **options):
        numbers = opened(self, data, header, **options)
        plain.append(numbers.numbers.copy())
        return numbers

    monkeypatch.setattr(SumBackend, "seal_sheet", sealing)
    monkeypatch.setattr(SumBackend, "open", opening)
    phase = make_phase(graph=GRAPH, backend="ckks", vectors=40, block=10)
    phase.run()
    return phase, np.concatenate(plain)


def test_no_plaintext_value_crosses_the_server(recorded):
    phase, numbers = recorded
    numbers = numbers[np.abs(numbers) > 1e-9]
    assert numbers.size > 1000
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    for offset in range(8):
        words = np.frombuffer(wire, "<u8", offset=offset, count=(len(wire) - offset) // 8)
        assert not np.isin(numbers.view(np.uint64), words).any()


def test_no_key_crosses_the_server(make_phase, monkeypatch):
    """Neither the keys of the group and of pairs nor what they are made of."""
    rings, with_sum_keys = [], KeyRing.with_sum_keys

    def noting(self, *keys):
        rings.append(with_sum_keys(self, *keys))
        return rings[-1]

    monkeypatch.setattr(KeyRing, "with_sum_keys", noting)
    phase = make_phase(graph=GRAPH, backend="ckks")
    phase.run()
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    assert len(rings) == 4
    for ring in rings:
        assert not ring.public_keys
        made = [
            ring.pair_secret(peer, f"ckks-2048 {recipient}")
            for peer in ring.roots
            for recipient in (ring.me, peer)
        ]
        made += [ring.group_secret("ckks-2048 "), ring.group_key, *ring.roots.values()]
        assert not any(secret in wire for secret in made)
