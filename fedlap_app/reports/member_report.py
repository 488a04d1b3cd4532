"""An organisation's own report, for its own eyes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedlap_app.methods.scores import SPLITS
from fedlap_app.privacy.density import own_density
from fedlap_app.reports.charts import Axis, Chart, bars, lines, points
from fedlap_app.reports.curves import SPLIT_NAMES, curves, position, score
from fedlap_app.reports.elements import FAIR, GOOD, POOR, Figure, Section, Table, Words
from fedlap_app.reports.exposure import (
    Target,
    advice,
    exposure_charts,
    exposure_figure,
    verdict,
)
from fedlap_app.reports.member_facts import MemberFacts
from fedlap_app.reports.page import Page
from fedlap_app.reports.quality import calibration, confusion, expected_error

_MB = 1e6
_DRAWN = 2000  # nodes in the picture
NOTICE = "The organisation's own report: its nodes, labels and scores are for nobody else."
Pieces = list[Chart | Table | Words]


def member_page(facts: MemberFacts) -> Page:
    """The page."""
    sections = [
        Section("Own scores", [*_scores(facts), *_rounds(facts)]),
        Section("Predictions", _predictions(facts)),
        Section("The spectrum, and the own nodes in it", _spectrum(facts)),
        Section("What others can learn", _exposure(facts)),
        Section("Consent: used and left", [_consent(facts)]),
        Section("What was sent and received", _ledger(facts)),
        Section("Settings", [_settings(facts)]),
    ]
    part = facts.part
    about = (
        f"{part.num_nodes:,} own nodes, {part.num_classes} classes, borders "
        f"{', '.join(part.partners) or 'nobody'}; model of a run with {facts.settings.method}"
    )
    return Page(f"Report of {part.name}", about, figures(facts), sections, NOTICE)


def figures(facts: MemberFacts) -> list[Figure]:
    """The first screen."""
    return [*_quality(facts), _price(facts), exposure_figure(_target(facts), facts.vectors)]


def _quality(facts: MemberFacts) -> list[Figure]:
    """How good on the own test nodes, and against the commonest class."""
    good, against = "How good is it here?", "Against what?"
    test = facts.mask("test")
    if not test.any():
        says = "this organisation has no labelled test nodes"
        return [Figure(good, "not known", says), Figure(against, "not known", says)]
    labels = facts.part.labels
    score = 100 * float((facts.predicted[test] == labels[test]).mean())
    error = 100 * expected_error(facts.confidence[test], facts.predicted[test] == labels[test])
    trained = labels[facts.mask("train")] if facts.mask("train").any() else labels[test]
    commonest = int(np.bincount(trained).argmax())
    naive = 100 * float((labels[test] == commonest).mean())
    count = int(test.sum())
    spread = 196 * (max(score * (100 - score), 0.0) / 1e4 / count) ** 0.5
    honest = GOOD if error <= 5 else FAIR if error <= 10 else POOR
    return [
        Figure(good, f"{score:.2f} % of {count} test nodes",
               f"± {spread:.1f} points by their number; its confidence is off by {error:.1f} "
               "points", honest),
        Figure(against, f"{score - naive:+.2f} points",
               f"over always saying {facts.part.classes[commonest]!r} ({naive:.2f} %); against "
               "training alone: `fedlap compare`", GOOD if score > naive else POOR),
    ]  # fmt: skip


def _price(facts: MemberFacts) -> Figure:
    question = "At what price?"
    if facts.basis is None:
        return Figure(question, "no basis", "models and scores alone were exchanged; see below")
    paid = facts.basis.certificate
    return Figure(
        question,
        f"{paid.bytes_up / _MB:.2f} MB sent",
        f"for the basis, in {paid.round_trips} round trips and {paid.seconds:.1f} s; "
        f"{paid.bytes_down / _MB:.2f} MB received",
    )


def _target(facts: MemberFacts) -> Target:
    density = own_density(facts.part)
    nodes = facts.part.num_nodes
    return Target(facts.part.name, nodes, density, f"{nodes} own nodes, own density {density:.2g}")


def _scores(facts: MemberFacts) -> Pieces:
    labels, hits = facts.part.labels, facts.predicted == facts.part.labels
    log = facts.log_probabilities.astype(np.float64)
    rows = []
    for split in SPLITS:
        mask = facts.mask(split)
        if mask.any():
            loss = -float(log[mask, labels[mask]].mean())
            rows.append((SPLIT_NAMES[split], int(mask.sum()), f"{100 * hits[mask].mean():.2f} %",
                         f"{loss:.3f}"))  # fmt: skip
    pieces: Pieces = [Table(("nodes", "number", "accuracy", "mean loss"), rows, "Own scores")]
    judged = facts.mask("test") if facts.mask("test").any() else facts.mask("val")
    if not judged.any():
        return pieces
    classes = list(facts.part.classes)
    found: list[dict[str, Any]] = [
        {"class": name, "recall": float(hits[judged & (labels == at)].mean())}
        for at, name in enumerate(classes)
        if (judged & (labels == at)).any()
    ]
    told = ", ".join(f"{row['class']} {100 * row['recall']:.1f} %" for row in found)
    return [
        *pieces,
        confusion(labels[judged], facts.predicted[judged], classes),
        bars("Share found of each class (recall)", f"{told}.", found,
             Axis("recall", "recall", ".0%", (0, 1), zero=True), Axis("class", "", kind="nominal"),
             "class"),
        calibration(facts.confidence[judged], hits[judged]),
    ]  # fmt: skip


def _rounds(facts: MemberFacts) -> Pieces:
    """Own scores after every stage, and totals of the rounds, where the organisation noted them."""
    rows = [
        (number, *(_share(stage[f"{split}-correct"], stage[f"{split}-count"]) for split in SPLITS),
         _mean(stage["val-loss-sum"], stage["val-count"]))
        for number, stage in enumerate(facts.stages)
    ]  # fmt: skip
    header = ("stage", *(SPLIT_NAMES[split] for split in SPLITS), "validation loss")
    own = [Table(header, rows, "Own accuracy after every stage of self-training")] if rows else []
    says = "Over all organisations together."
    if facts.settings.sealed:
        says += " The server is not told these numbers; all organisations are."
    kept = position(facts.rounds, *facts.kept) if facts.kept else None
    return [*own, *curves(facts.rounds, kept, says, "of all organisations per round")]


def _share(part: float, count: float) -> str:
    return score(part / count if count else None, "accuracy")


def _mean(total: float, count: float) -> str:
    return score(total / count if count else None, "loss")


def _predictions(facts: MemberFacts) -> Pieces:
    """Predicted classes of all own nodes, labelled or not."""
    rows = []
    for at, name in enumerate(facts.part.classes):
        own = facts.predicted == at
        sure = f"{100 * float(facts.confidence[own].mean()):.1f} %" if own.any() else ""
        rows.append((name, int(own.sum()), int((own & (facts.part.labels < 0)).sum()), sure))
    doubted = int((facts.confidence < 0.5).sum())
    header = ("class", "predicted", "of them without a label", "mean confidence")
    says = f"{doubted} of {facts.part.num_nodes} nodes have no class with a probability of a half."
    where = "`fedlap predict` writes a line for each node into predictions.csv of this folder."
    return [Table(header, rows, "Own nodes by predicted class"), Words([says, where])]


def _spectrum(facts: MemberFacts) -> Pieces:
    if facts.basis is None:
        return [Words(["The model of this run reads no spectral basis."])]
    basis, paid = facts.basis, facts.basis.certificate
    values = [
        {"pair": at, "eigenvalue": float(value), "what": "kept"}
        for at, value in enumerate(basis.eigenvalues, 1)
    ]
    certificate = Table(
        ("certificate", "value"),
        [
            ("orthogonality, 2-norm of I - U'U", f"{paid.orthogonality:.2e}"),
            ("largest residual", f"{paid.residual_max:.2e}"),
            ("vectors exchanged, kept", f"{paid.vectors}, {paid.rank}"),
            ("round trips", paid.round_trips),
            ("MB sent, received", f"{paid.bytes_up / _MB:.2f}, {paid.bytes_down / _MB:.2f}"),
            ("seconds", f"{paid.seconds:.1f}"),
        ],
        "Certificate of the basis",
    )
    ends = f"{basis.eigenvalues.min():.4g} to {basis.eigenvalues.max():.4g}"
    return [
        lines("Eigenvalues that are kept", f"{len(values)} values from {ends}.", values,
              Axis("pair", "number", "d"), Axis("eigenvalue", "eigenvalue"), "what"),
        *_picture(facts),
        certificate,
    ]  # fmt: skip


def _picture(facts: MemberFacts) -> list[Chart]:
    """Own nodes by two eigenvectors; the first one of a connected graph says only the degree."""
    assert facts.basis is not None
    rows = np.asarray(facts.basis.U)
    if rows.shape[1] < 2:
        return []
    first = 1 if rows.shape[1] > 2 else 0
    step = -(-len(rows) // _DRAWN)
    dots = [
        {"x": round(float(rows[at, first]), 5), "y": round(float(rows[at, first + 1]), 5),
         "class": facts.part.classes[facts.predicted[at]]}
        for at in range(0, len(rows), step)
    ]  # fmt: skip
    shown = "all own nodes" if step == 1 else f"every {step}th own node"
    return [
        points("Own nodes in the spectral plane, coloured by predicted class",
               f"Eigenvectors {first + 1} and {first + 2}, {shown}; near nodes are well connected.",
               dots, Axis("x", f"eigenvector {first + 1}", ".2"),
               Axis("y", f"eigenvector {first + 2}", ".2"), "class")
    ]  # fmt: skip


def _exposure(facts: MemberFacts) -> Pieces:
    if not facts.vectors:
        return [Words(["No vectors left since the graph last changed."], strong=True)]
    target = _target(facts)
    return [
        Words([f"{verdict(target, facts.vectors)}."], strong=True),
        Words([advice(target, facts.vectors), "`fedlap audit FOLDER` has the whole table."]),
        *exposure_charts([target], facts.vectors),
    ]


def _consent(facts: MemberFacts) -> Table:
    policy, auc = facts.policy, _target(facts).auc(facts.vectors)
    rows: list[Sequence[object]] = []
    limits = {"vectors": policy.most_vectors, "feature columns": policy.most_feature_columns}
    for kind, most in limits.items():
        used = facts.used.get(kind, 0)
        left = "not limited" if most is None else max(most - used, 0)
        rows.append((f"{kind} exchanged since the graph last changed", used,
                     "no limit" if most is None else most, left))  # fmt: skip
    bound = policy.largest_auc
    rows.append(("AUC of the worst-case attacker", f"{auc:.4f}",
                 "no limit" if bound is None else f"{bound:g}",
                 "not limited" if bound is None else f"{max(bound - auc, 0):.4f}"))  # fmt: skip
    caption = "What the table [policy] of org.toml allows"
    return Table(("what", "used", "allowed", "left"), rows, caption)


def _ledger(facts: MemberFacts) -> Pieces:
    if not facts.ledger:
        return [Words(["The store holds no ledger."])]
    pieces: Pieces = []
    for way in ("sent", "received"):
        rows = [
            (each["kind"], f"{each['messages']:,}", f"{each['values']:,}",
             " and ".join(each["readable_by"]), " and ".join(each["sum_readable_by"]),
             "yes" if each["keys"] else "no")
            for each in facts.ledger[way]
        ]  # fmt: skip
        header = ("kind", "messages", "numbers", "readable by", "the sum by", "sealed")
        pieces.append(Table(header, rows, f"{way.capitalize()}, over all jobs of the store"))
    return pieces


def _settings(facts: MemberFacts) -> Table:
    kept = {k: v for k, v in facts.settings.to_config().items() if not k.endswith("-dir")}
    return Table(("setting", "value"), [*kept.items()], "Settings of the run", folded=True)
