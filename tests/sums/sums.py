"""Sums as tests make them: every sender seals, one accumulator adds."""

import tracemalloc

import numpy as np

from fedlap_app.sums.choice import make_accumulator
from fedlap_app.sums.header import Header


def sealed_by_all(members, header, values, **options):
    """One sealed vector of every sender of the sum, by name."""
    senders = members[0].senders(header.recipient)
    return {
        m.keys.me: m.seal(v, header, **options)
        for m, v in zip(members, values, strict=True)
        if m.keys.me in senders
    }


def add(header, sealed):
    """The sum of what some members sealed, by name."""
    accumulator = make_accumulator(header, lambda recipient: tuple(sealed))
    for contribution in sealed.values():
        accumulator.add(contribution)
    return accumulator.result(header.recipient)


def peak_memory(members, place, length):
    """Bytes that the server needs at most to add the vectors of all members."""
    header = members[0].small_header(place, length=length)
    sealed = members[0].seal(np.zeros(length), header)
    body = sealed[Header.unpack(sealed)[1] :]
    tracemalloc.start()
    accumulator = make_accumulator(header, members[0].senders)
    for member in members:
        accumulator.add(header.of(member.keys.me).pack() + body)
    accumulator.result("")
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found
