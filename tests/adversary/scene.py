"""Organisations that pin each other, and a server that asks their ClientApps what it likes."""

import shutil
from dataclasses import replace

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from scipy.stats import chi2

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.store.newest import Newest
from fedlap_app.store.packing import pack, unpack
from fedlap_app.sums.header import Header
from fedlap_app.sums.job.agreement import Agreement
from fedlap_app.sums.job.answered import stored_rest
from fedlap_app.sums.job.checkpoint import Checkpoints
from fedlap_app.sums.job.coordinator import Choices, Coordinator
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import CONTRIBUTION, HelloReply, Request
from fedlap_app.sums.job.parts import asked
from fedlap_app.sums.job.secrets import stored_secrets

BINS = 64
_LARGEST = chi2.isf(1e-9, BINS - 1)


class RefusedError(Exception):
    """A client's reason for a refusal."""


class Scene:
    """Folders of organisations with pinned fingerprints, as a deployment has them."""

    def __init__(self, root, settings, *, pinned=True):
        self.root, self.settings = root, settings
        self.folders = {}
        for part in load_federation(settings.data_spec):
            self.folders[part.name] = root / "orgs" / part.name
            write_folder(part, self.folders[part.name])
        self.names = tuple(self.folders)
        self.marks = {
            name: stored_secrets(folder / "store" / "offline", {}, trust=False).identity.fingerprint
            for name, folder in self.folders.items()
        }
        if pinned:
            for name in self.names:
                pins = (f'{n} = "{mark}"' for n, mark in self.marks.items() if n != name)
                self.add(name, "peers", *pins)
        if not settings.sealed:
            for name in self.names:
                self.add(name, "policy", 'training-backends = ["plain", "mask"]')
        self.log = []

    def add(self, name, table, *lines):
        """Lines in a table at the end of an organisation's org.toml."""
        file = self.folders[name] / "org.toml"
        head, text = f"[{table}]", file.read_text()
        before, _, after = text.partition(f"{head}\n")
        file.write_text("\n".join([before.rstrip("\n"), head, *lines, after]))

    def store(self, name):
        return self.folders[name] / "store"

    def ask(self, name, request, *, program="", **changes):
        """Reply of the real ClientApp to a request, under a run configuration of any content."""
        own = ConfigRecord({"asked": asked(request.kind, request.job, request.step)})
        if program:
            own["program"] = program
        common = ConfigRecord({})
        if len(request.own):
            own["body"] = bytes(request.own)
        if len(request.common):
            common["body"] = bytes(request.common)
        reply = self.send(
            name, "query.offline", RecordDict({"own": own, "common": common}), changes
        )
        body = reply["reply"].get("body", b"")
        self.log.append((name, request, body))
        return body

    def send(self, name, kind, content, changes=()):
        """Content of a reply to a message of any kind; a refusal is raised."""
        config = replace(self.settings, **dict(changes)).to_config()
        grid = InProcessGrid(app, folder_configs([self.folders[name]]), config, run_id=new_run_id())
        (node,) = grid.get_node_ids()
        (reply,) = grid.send_and_receive([Message(content, node, kind)])
        if reply.has_error():
            raise RefusedError(reply.error.reason)
        if "refusal" in reply.content:
            raise RefusedError(reply.content["refusal"]["reason"])
        return reply.content

    def card(self, name, hello, **changes):
        """Card of one organisation for a hello."""
        reply = self.ask(name, Request("hello", "", 0, hello.encode()), **changes)
        return HelloReply.unpack(reply).card

    def coordinator(self, hello, names=None):
        spec = self.settings.offline_spec
        choices = Choices(hello, spec.program, spec.hide_topology, resume=False, refresh=True)
        return Coordinator(names or self.names, choices, Checkpoints(self.root / "server"))

    def run(self, hello, *, rounds=10_000, coordinator=None, **changes):
        """Go through a job, honestly, for some rounds; gives the coordinator."""
        coordinator = coordinator or self.coordinator(hello)
        price = {"round_trips": 1, "bytes_up": 2, "bytes_down": 3, "seconds": 4.0}
        while not coordinator.done and rounds:
            rounds -= 1
            for name, request in coordinator.requests.items():
                coordinator.take(name, self.ask(name, request, **changes))
            coordinator.advance(dict.fromkeys(self.names, price))
        return coordinator

    def snapshot(self, name):
        """A copy of a store as it is now."""
        copy = self.root / f"snapshot-{len(list(self.root.iterdir()))}"
        shutil.copytree(self.store(name), copy)
        return copy

    def restore(self, name, copy):
        """Put a store back as it was; the process is a new one."""
        forget_live()
        shutil.rmtree(self.store(name))
        shutil.copytree(copy, self.store(name))

    def sent(self, name):
        """Job, step, header and words of every message of contributions of a member."""
        for who, request, reply in self.log:
            parts = unpack(reply) if who == name and len(reply) else []
            if parts and bytes(parts[0]) == CONTRIBUTION:
                header, size = Header.unpack(parts[1])
                words = np.frombuffer(bytes(parts[1])[size:], "<u8")
                yield request.job, request.step, header, words

    def contributions(self, name):
        """Words of every contribution that a member sent, by (job, step, recipient)."""
        found = {}
        for job, step, header, words in self.sent(name):
            slots = (words.size - sum(each.length for each in header.sums)) // len(header.sums)
            at = 0
            for each in header.sums:
                end = at + each.length + slots
                found.setdefault((job, step, each.recipient), []).append(words[at:end])
                at = end
        return found

    def keys(self, name, job):
        """Keys that a member holds in the middle of a job."""
        answers = Newest(self.store(name), f"offline-{job}-answered", durable=False)
        return Agreement.unpack(unpack(stored_rest(answers), 3)[0]).keys


def cards_request(job, hello, cards):
    return Request("cards", job, 0, pack(hello.encode(), *cards))


def is_uniform(words, modulus=2**64):
    """Whether words below a modulus look uniform: their highest bytes, in 64 bins, twice."""
    bits = (modulus - 1).bit_length()
    shifted = (words << np.uint64(64 - bits)).astype(">u8")
    octets = shifted.view(np.uint8).reshape(-1, 8)[:, : bits // 8].reshape(-1)
    return max(_chi_square(octets >> 2), _chi_square(octets % BINS)) < _LARGEST


def _chi_square(numbers):
    counts, expected = np.bincount(numbers, minlength=BINS), numbers.size / BINS
    return float(((counts - expected) ** 2).sum() / expected)
