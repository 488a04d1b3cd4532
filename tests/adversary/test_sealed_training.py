"""A server of sealed training that asks what it likes and keeps all that it hears."""

import copy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.client.organisation import _organisations
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.records import to_arrays
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run import run
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.methods.kept import MOST_UNFINISHED
from fedlap_app.sums.header import Header

from .scene import RefusedError, Scene, is_uniform

VICTIM = "bank-01"


@pytest.fixture
def sealed(small):
    return replace(
        small, training_backend="mask", spectral=False, rounds=3, self_training=1, hidden="64",
        patience=0, publish_scores=False,
    )  # fmt: skip


class Recording(InProcessGrid):
    """Keeps all that the server gets, and may change what it sends."""

    def __init__(self, scene, settings=None, **options):
        settings = settings or scene.settings
        configs = folder_configs(scene.folders.values())
        super().__init__(app, configs, settings.to_config(), run_id=new_run_id(), **options)
        self.seen = []

    def _deliver(self, message, context):
        reply = super()._deliver(message, context)
        self.seen.append((message.metadata.message_type, message.content, reply.content))
        return reply

    def train(self, scene):
        run(self, scene.settings, Unwatched())
        return self

    def words(self):
        """Header and words of every sealed contribution, in the order in which they came."""
        for kind, sent, content in self.seen:
            is_turn = kind == "train.sealed" and sent["config"]["kind"] == "turn"
            if is_turn and content["reply"].get("body"):
                yield words_of(content)


def words_of(content):
    """Header and words of a sealed contribution."""
    body = content["reply"]["body"]
    header, size = Header.unpack(body)
    return header, np.frombuffer(body[size:], "<u8")


def model_of(scene):
    rng = np.random.default_rng(0)
    return {"arrays": to_arrays({"weight": rng.normal(size=(8, 8)).astype(np.float32)})}


@pytest.mark.parametrize("kind", ["train", "evaluate", "evaluate.keep", "train.alone"])
def test_no_model_of_the_server_is_trained_scored_or_kept(sealed, tmp_path, kind):
    scene = Scene(tmp_path, sealed)
    grid = Recording(scene)
    config = ConfigRecord({"run": grid.run.run_id, "stage": 0, "server-round": 1})
    content = RecordDict({**model_of(scene), "config": config})
    # The run joins first, as any run does; what comes then is refused whatever it holds.
    with pytest.raises(RefusedError, match="was not made by this app's server"):
        join_and_send(grid, kind, content)


def join_and_send(grid, kind, content, *nodes):
    """Send a message to some organisations, or all, in a run that they have joined."""
    for ask in (("query.join", RecordDict({"config": ConfigRecord({"version": ""})})),
                (kind, content)):  # fmt: skip
        for node in nodes or grid.get_node_ids():
            (reply,) = grid.send_and_receive([Message(ask[1], node, ask[0])])
            if "refusal" in reply.content:
                raise RefusedError(reply.content["refusal"]["reason"])


@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_the_server_gets_names_sizes_and_words_that_say_nothing(sealed, tmp_path, backend):
    scene = Scene(tmp_path, replace(sealed, training_backend=backend))
    first, second = (Recording(scene).train(scene) for _ in range(2))
    for grid in (first, second):
        for kind, _, content in grid.seen:
            assert not any(isinstance(record, ArrayRecord) for record in content.values())
            if kind == "query.join":
                assert set(content["member"]) == {
                    "name", "version", "settings", "schema", "num-classes", "num-features",
                    "num-categories", "num-inputs", "asks",
                }  # fmt: skip
            if kind == "train.sealed":
                assert set(content["reply"]) <= {"body", "mark"}
    found = [(h, w) for grid in (first, second) for h, w in grid.words() if w.size > 500]
    # Two runs of three members, three rounds in each of two stages.
    assert len(found) == 2 * 3 * 3 * 2
    for _, words in found:
        assert is_uniform(words)
    mine = [words for header, words in found if header.sender == VICTIM]
    for some, others in combinations(mine, 2):
        assert is_uniform(some - others)


@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_other_data_of_the_same_sizes_gives_the_same_view(sealed, tmp_path, backend):
    views = []
    for seed in (0, 1):
        settings = replace(sealed, rounds=2, training_backend=backend)
        scene = Scene(tmp_path / str(seed), settings)
        for name in scene.names if seed else ():
            scramble(scene.folders[name])
        views.append([seen(*each) for each in Recording(scene).train(scene).seen])
    assert len(views[0]) > 40
    for one, other in zip(*views, strict=True):
        assert one == other


def seen(kind, sent, answered):
    """What a message and its reply look like: records, keys, kinds, lengths, headers, numbers."""
    return kind, shape_of(sent), shape_of(answered)


def shape_of(content):
    found = []
    for name, record in sorted(content.items()):
        assert not isinstance(record, ArrayRecord)
        for key, value in sorted(record.items()):
            about = value if isinstance(value, int | float) and key != "run" else type(value)
            size = len(value) if isinstance(value, bytes | str | list) else 0
            found.append((name, key, about, size, *header_of(key, value)))
    return found


def header_of(key, value):
    """Facts of a header, but for the ids of jobs and keys, which are drawn anew in each run."""
    if key not in ("body", "data") or len(value) < 100:
        return ()
    try:
        header, size = Header.unpack(value)
    except ProtocolError:
        return ()  # a message before the first sum
    named = header._asdict()
    drawn = {"job", "key_id", "members_hash", "members"}
    return size, *(str(named[field]) for field in named if field not in drawn)


def scramble(folder):
    """Other features, labels and edges: as many of each."""
    path = folder / "nodes.csv"
    head, *lines = path.read_text().splitlines()
    columns = head.split(",")
    at = [columns.index(name) for name in columns if name in ("label", "split")]
    rows = [line.split(",") for line in lines]
    rng = np.random.default_rng(5)
    turned = [
        [
            cell if c == 0 else rows[(i + 1) % len(rows)][c] if c in at else f"{rng.normal():.6f}"
            for c, cell in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]
    path.write_text("\n".join([head, *(",".join(row) for row in turned)]) + "\n")
    # Nodes change places in all edges that other organisations do not see.
    ids = [row[0] for row in rows]
    places = dict(zip(ids, rng.permutation(ids), strict=True))
    path = folder / "edges.csv"
    head, *lines = path.read_text().splitlines()
    edges = []
    for source, target, owner, *rest in (line.split(",") for line in lines):
        ends = (source, target) if owner else (places[source], places[target])
        edges.append(",".join([*ends, owner, *rest]))
    path.write_text("\n".join([head, *edges]) + "\n")


class Failing(Recording):
    """A member falls silent at one turn, and the server dies at another."""

    silent = dies = ()

    def _answer(self, message):
        config = message.content.get("config", {})
        turn = config.get("kind"), config.get("stage"), config.get("number")
        if turn == self.silent and message.metadata.dst_node_id == max(self.get_node_ids()):
            return None
        reply = super()._answer(message)
        if turn == self.dies:
            raise KeyboardInterrupt
        return reply


def test_attempts_and_restarts_say_nothing_either(sealed, tmp_path):
    settings = replace(
        sealed, clients=4, min_clients=3, straggler_timeout=0.2, step_timeout=2.0, self_training=0
    )
    scene, found = Scene(tmp_path, settings), {}
    grid = Failing(scene)
    grid.silent, grid.dies = ("turn", 0, 2), ("turn", 0, 3)
    with pytest.raises(KeyboardInterrupt):
        grid.train(scene)
    again = Failing(scene).train(scene)
    for header, words in (*grid.words(), *again.words()):
        if words.size > 500:
            found.setdefault((header.sender, *header.place), set()).add(words.tobytes())
    # Asked again after the restart, a member gives the same bytes.
    assert all(len(bodies) == 1 for bodies in found.values())
    assert {attempt for _, _, _, attempt, *_ in found} == {0, 1}
    for name in scene.names:
        mine = [np.frombuffer(*each, "<u8") for key, each in found.items() if key[0] == name]
        for some, others in combinations(mine, 2):
            assert is_uniform(some - others)


class Turned(Recording):
    """Gives one organisation another sum than the others."""

    def _deliver(self, message, context):
        given = message.content.get("sum")
        if given is not None and message.metadata.dst_node_id == min(self.get_node_ids()):
            data = bytearray(given["data"])
            data[-40] ^= 1
            message.content["sum"] = ConfigRecord({**given, "data": bytes(data)})
        return super()._deliver(message, context)


def test_a_sum_of_its_own_for_one_victim_is_refused_by_it(sealed, tmp_path):
    scene = Scene(tmp_path, sealed)
    grid = Turned(scene)
    with pytest.raises(Exception, match=r"bank-00: .*(altered|check slots|pads do not cancel)"):
        grid.train(scene)


class Hasty(Recording):
    """Asks for a round again while it is trained, after other runs have pushed out its run."""

    again = None

    def attack(self, scene):
        """What two processes of the victim answer to one and the same message."""
        self.again, (kind, asked, context) = (), self.last
        _organisations.clear()  # each message of a deployment is a process of its own
        for _ in range(MOST_UNFINISHED):
            other = Recording(scene)
            where = {**asked["config"], "run": other.run.run_id, "kind": "where"}
            join_and_send(other, kind, RecordDict({"config": ConfigRecord(where)}), context.node_id)
        message = Message(asked, context.node_id, kind)
        self.again = words_of(super()._deliver(message, context).content)
        _organisations.clear()

    def _deliver(self, message, context):
        metadata = message.metadata
        self.last = metadata.message_type, copy.deepcopy(message.content), context
        return super()._deliver(message, context)


def test_a_round_that_is_trained_twice_at_once_is_sealed_once(sealed, tmp_path, monkeypatch):
    """The second process knows no state of the optimiser: other content under the same pads."""
    scene = Scene(tmp_path, replace(sealed, optimizer_state="keep", self_training=0))
    grid, honest = Hasty(scene), FedAvg.train

    def train(method, organisation, received, turn):
        update = honest(method, organisation, received, turn)
        if (organisation.name, turn.number) == (VICTIM, 2) and grid.again is None:
            grid.attack(scene)
        return update

    monkeypatch.setattr(FedAvg, "train", train)
    grid.train(scene)
    header, words = grid.again
    both = [found for known, found in grid.words() if known == header]
    assert len(both) == 2
    assert all(np.array_equal(words, found) for found in both)


class Leaving(Recording):
    """Begins to train and stops in the second round."""

    def _deliver(self, message, context):
        if message.content.get("config", {}).get("number") == 2:
            raise RuntimeError
        return super()._deliver(message, context)


def test_jobs_that_never_end_fill_no_disk(sealed, tmp_path):
    """Each leaves some copies of the model until another one takes its place."""
    scene = Scene(tmp_path, replace(sealed, resume=False, step_timeout=1.0))
    for _ in range(2):
        with pytest.raises(RunError):
            Leaving(scene).train(scene)
    for name in scene.names:
        jobs = {path.name.split("-")[1] for path in scene.store(name).glob("training-*-settled-*")}
        assert len(jobs) == 1
