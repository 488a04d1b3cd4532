"""Other projects on our splits and partitions: `python benchmarks/peers/run.py --dataset cora`.

Runs FedGCN of FedGraph and FedAvg, FED-PUB and FedGTA of OpenFGL, where they are installed, each
in a process of its own, and our systems of the same names beside them, on the same graph, parts and
split. Writes peers.csv: accuracy, seconds, bytes (of others' models, as they count no messages).
Neither is a dependency; what is not installed is left out with a line that says so.
"""

import argparse
import contextlib
import csv
import importlib.util
import io
import itertools
import json
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fedlap_app as fedlap
from fedlap_app.graphs.graph import join
from fedlap_app.studies.tables.recipes import settings_for, systems
from fedlap_app.studies.trials import Trial, run_trial

OPENFGL = ("fedavg", "fedpub", "fedgta")
COLUMNS = ("project", "method", "dataset", "clients", "seed", "accuracy", "seconds", "bytes")
Found = dict[str, Any]


def main() -> None:
    """Run what there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--partition", default="random")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("peers.csv"))
    parser.add_argument("--only", help=argparse.SUPPRESS)  # one peer, in its own process
    given = parser.parse_args()
    if given.only:
        project, method, seed = given.only.split(":")
        orgs = fedlap.load(
            given.dataset, clients=given.clients, partition=given.partition, seed=int(seed)
        )
        print(json.dumps(_PEERS[project](orgs, method, given.rounds, int(seed))))
        return
    rows = [row for seed in range(given.seeds) for row in _rows(given, seed)]
    with given.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows in {given.out}")


def _rows(given: argparse.Namespace, seed: int) -> list[Found]:
    facts = {"dataset": given.dataset, "clients": given.clients, "seed": seed}
    wanted = [("fedgraph", "FedGCN"), *(("openfgl", method) for method in OPENFGL)]
    rows = []
    for project, method in wanted:
        if importlib.util.find_spec(project) is None:
            print(f"{project} is not installed: {method} is left out", file=sys.stderr)
            continue
        command = [sys.executable, __file__, "--only", f"{project}:{method}:{seed}"]
        for key in ("dataset", "clients", "partition", "rounds"):
            command += [f"--{key}", str(getattr(given, key))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:]
            print(f"{project} {method} failed: {' '.join(last)}", file=sys.stderr)
            continue
        found = json.loads(done.stdout.strip().splitlines()[-1])
        rows.append({**facts, "project": project, "method": method, **found})
    return rows + [{**facts, **_ours(given, name, seed)} for name in ("fedgcn", *OPENFGL)]


def _ours(given: argparse.Namespace, name: str, seed: int) -> Found:
    """The system of the tables, with the protocol of fresh splits."""
    changes = {"clients": given.clients, "partition": given.partition, "seed": seed}
    settings = settings_for(systems([name])[0], given.dataset, "fedlap", changes)
    with tempfile.TemporaryDirectory() as folder:
        result = run_trial(Trial(settings), Path(folder))
    return {
        "project": "fedlap",
        "method": name,
        "accuracy": result.scores["test"],
        "seconds": result.seconds,
        "bytes": given.clients * (result.up + result.down),
    }


def _openfgl(orgs: fedlap.Organisations, method: str, rounds: int, seed: int) -> Found:
    """OpenFGL's trainer on our parts; it reads the split from files that are written first."""
    import openfgl.config as config
    import openfgl.flcore.trainer as trainer
    import torch
    from torch_geometric.data import Data

    def data_of(part: Any, start: int) -> Data:  # noqa: ANN401 - a Subgraph
        index = torch.from_numpy(np.array(part.intra_edges[0]))
        made = Data(_dense(part), index, y=torch.from_numpy(np.array(part.labels)))
        made.num_global_classes = part.num_classes
        made.global_map = {at: start + at for at in range(part.num_nodes)}
        return made

    with tempfile.TemporaryDirectory() as folder:
        starts = np.cumsum([0, *(part.num_nodes for part in orgs)])
        _write_split(Path(folder) / "node_cls", orgs, starts)
        whole = data_of(join(list(orgs)), 0)
        local = [data_of(part, int(start)) for part, start in zip(orgs, starts, strict=False)]
        made = type("Ours", (), {"local_data": local, "global_data": whole})
        made.processed_dir = folder
        trainer.FGLDataset = lambda args: made
        args = config.args
        args.root, args.dataset, args.fl_algorithm = folder, ["Cora"], method
        args.num_clients, args.num_rounds, args.seed = len(orgs), rounds, seed
        args.model, args.metrics, args.task = ["gcn"], ["accuracy"], "node_cls"
        args.use_cuda = False
        torch.manual_seed(seed)
        started = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            run = trainer.FGLTrainer(args)
            run.train()
        seconds = time.perf_counter() - started
        size = sum(value.numel() for value in run.clients[0].task.model.parameters())
    accuracy = float(run.evaluation_result["best_test_accuracy"])
    return {"accuracy": accuracy, "seconds": seconds, "bytes": 8 * size * rounds * len(orgs)}


def _write_split(folder: Path, orgs: fedlap.Organisations, starts: Any) -> None:  # noqa: ANN401
    import torch

    folder.mkdir(parents=True)
    for number, part in enumerate(orgs):
        for name in ("train", "val", "test"):
            mask = np.array(getattr(part, f"{name}_mask"))
            torch.save(torch.from_numpy(mask), folder / f"{name}_{number}.pt")
            everywhere = (starts[number] + np.flatnonzero(mask)).tolist()
            (folder / f"glb_{name}_{number}.pkl").write_bytes(pickle.dumps(everywhere))


def _fedgraph(orgs: fedlap.Organisations, method: str, rounds: int, seed: int) -> Found:
    """FedGraph's FedGCN with one hop on our parts, without encryption."""
    import attridict
    import torch
    from fedgraph.federated_methods import run_NC
    from fedgraph.utils_nc import get_in_comm_indexes

    whole = join(list(orgs))
    starts = np.cumsum([0, *(part.num_nodes for part in orgs)])
    splits = [torch.arange(one, other) for one, other in itertools.pairwise(starts)]
    index = torch.from_numpy(np.array(whole.edge_index))
    train, test = (
        torch.from_numpy(np.flatnonzero(mask)) for mask in (whole.train_mask, whole.test_mask)
    )
    around = get_in_comm_indexes(index, splits, len(orgs), 1, train, test)
    labels = torch.from_numpy(np.array(whole.labels))
    data = (index, _dense(whole), labels, train, test, whole.num_classes, splits, *around)
    args = attridict(
        {
            "fedgraph_task": "NC", "dataset": "cora", "method": method, "num_hops": 1,
            "n_trainer": len(orgs), "global_rounds": rounds, "local_step": 3,
            "learning_rate": 0.5, "num_layers": 2, "batch_size": -1, "gpu": False, "seed": seed,
            "iid_beta": 10000, "use_huggingface": False, "saveto_huggingface": False,
            "use_cluster": False, "use_encryption": False, "logdir": tempfile.mkdtemp(),
            "num_cpus_per_trainer": 0.1, "num_gpus_per_trainer": 0,
        }
    )  # fmt: skip
    started, said = time.perf_counter(), io.StringIO()
    with contextlib.redirect_stdout(said):
        run_NC(args, data)
    seconds = time.perf_counter() - started
    scores = re.findall(r"average_final_test_accuracy, ([0-9.]+)", said.getvalue())
    size = 16 * (whole.num_features + whole.num_classes)
    sums = 4 * whole.num_nodes * whole.num_features * len(orgs)
    return {
        "accuracy": float(scores[-1]),
        "seconds": seconds,
        "bytes": 8 * size * rounds * len(orgs) + sums,
    }


def _dense(part: Any) -> Any:  # noqa: ANN401 - a Subgraph; a tensor
    import torch

    features = part.features
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    return torch.from_numpy(np.array(dense, dtype=np.float32))


_PEERS: dict[str, Callable[..., Found]] = {"openfgl": _openfgl, "fedgraph": _fedgraph}

if __name__ == "__main__":
    main()
