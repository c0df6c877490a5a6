"""What do the protections of a vertical federation hide on real tables, against the best attacks?

credit1_full and credit2, columns dealt to two parties in turns; the first has the labels. Splits
from answers and labels from vectors of SMM-1, labels from answers and bins from vectors of SMM-2,
by the share r of null-space vectors and the number of trees that ask about the same rows. Labels
from gradients that are plain, noisy, or of labels randomised once. Columns from the splits of a
model of 20 trees. The anchors are guessing the more frequent value, and a sketch of the attack on
SMM-1: all entries at r = 10 %, 93 % at 50 %, chance near 90 %. Real tables are read from
HEDGEROW_DATA.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fedxgboost.cells import DEPTH, RATE, TREES, Cell, folder, settings_of, table
from hedgerow.audit.fedxgboost import (
    AuditSettings,
    SeenSplit,
    column_figures,
    label_figures,
    matrix_figures,
    split_matrix,
)
from hedgerow.audit.fedxgboost_matrices import answer, labels_from_answers, null_vectors
from hedgerow.data.binning import base_grid
from hedgerow.data.rng import Generator, stream
from hedgerow.data.schema import Categorical, Schema
from hedgerow.data.tables import Rows
from hedgerow.engines.local_session import local_session
from hedgerow.methods.fedxgboost.model import Part, SharedTree
from hedgerow.methods.fedxgboost.run import agreement_for, shares_of, vertical_role
from hedgerow.model.routing import routes_of

RESULT = Path(__file__).resolve().parent / "results" / "vertical_audit.json"
SKETCH = {0.1: 1.0, 0.5: 0.93}  # what alternating projections were said to find, by share
ROWS = 20_000  # of a table, for labels and columns
SETTINGS = AuditSettings(shares=(0.1, 0.5, 0.9, 0.95), repeats=(1, 8, 20), n_trees=TREES)
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["credit1_full", "credit2"])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for dataset in options.datasets:
        if not (folder() / f"{dataset}.parquet").exists():
            raise SystemExit(f"no {dataset}.parquet in HEDGEROW_DATA; nothing was measured")
        found[dataset] = audited(dataset)
        show(dataset, found[dataset])
        results = {
            "command": "HEDGEROW_DATA=folder python benchmarks/vertical_audit.py",
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "settings": {**asdict(SETTINGS), "rows": ROWS, "depth": DEPTH, "learning_rate": RATE},
            "datasets": found,
        }
        options.out.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(f"written: {options.out}")


def audited(dataset: str) -> dict[str, Any]:
    """All figures of one table."""
    schema, rows, _ = table(dataset)
    rows = rows.take(np.arange(min(ROWS, rows.n_rows)))
    settings = settings_of(Cell(dataset, 2, "plain"), schema, TREES)
    shares, agreement = shares_of(rows, schema, settings), agreement_for(schema, settings, "run")
    roles = local_session(agreement, vertical_role, shares, schema).roles
    parts = {name: role.part for name, role in roles.items()}
    probabilities, seen = walked(parts, schema, rows)
    places = settings.columns_of("party-1", schema)
    columns = np.stack([rows.codes.column(j).astype(np.float64) for j in places], axis=1)
    labels = rows.target.astype(np.int64)
    ordered = [not isinstance(schema.columns[j], Categorical) for j in places]
    splits = {places.index(j): found for j, found in seen.items()}
    named = {
        schema.names[places[int(j)]]: {k: None if v != v else v for k, v in one.items()}
        for j, one in column_figures(columns, splits, ordered).items()
    }
    return {
        "rows": len(labels),
        "base rate": float(max(labels.mean(), 1 - labels.mean())),
        **matrix_figures(columns, labels, SETTINGS, stream(0, "benchmark", dataset)),
        "alternating projections, SMM-1, 1 tree": alternating(
            columns, labels == 1, stream(1, "benchmark", dataset)
        ),
        "labels from SMM-2 with 32 bins": as_it_runs(
            columns, labels == 1, stream(2, "benchmark", dataset)
        ),
        **label_figures(labels, probabilities, SETTINGS),
        "columns from splits": named,
    }


def walked(
    parts: dict[str, Part], schema: Schema, rows: Rows
) -> tuple[Floats, dict[int, list[SeenSplit]]]:
    """Probabilities before each tree (tree, row), and the passive party's splits by column."""
    active = parts["party-0"]
    grid, scores = base_grid(schema), np.zeros(rows.n_rows)
    probabilities: list[Floats] = []
    seen: dict[int, list[SeenSplit]] = {}
    for tree in active.trees:
        probabilities.append(1 / (1 + np.exp(-scores)))
        at = np.zeros(rows.n_rows, np.int64)
        for node in range(len(tree.owner)):  # children come after their parent
            here = np.flatnonzero(at == node)
            if tree.owner[node] < 0:
                scores[here] += tree.values[tree.number[node], 0]
                continue
            split = parts[active.parties[tree.owner[node]]].splits[tree.number[node]]
            side = np.zeros((rows.n_rows, 1))
            routes = routes_of([split.structure()], grid)
            routes.add_scores(rows.codes, side, np.array([[0.0], [1.0]], np.float32))
            left = side[here, 0] == 0
            if tree.owner[node] > 0:
                seen.setdefault(split.column, []).append(SeenSplit(here, left))
            _down(tree, node, at, here, left)
    return np.stack(probabilities), seen


def _down(
    tree: SharedTree, node: int, at: NDArray[np.int64], here: NDArray[np.int64], left: Any
) -> None:
    at[here[left]], at[here[~left]] = tree.left[node], tree.right[node]


def alternating(columns: Floats, labels: NDArray[np.bool_], rng: Generator) -> dict[str, float]:
    """Alternating projections (300 of each kind), as in the sketch: entries found, by share."""
    found = {}
    for share in SETTINGS.shares:
        right = []
        for _ in range(SETTINGS.most_blocks):
            block = rng.permutation(len(columns))[: SETTINGS.block_rows]
            truth = split_matrix(columns[block], SETTINGS.candidates)
            p = float(labels[block].mean())
            numbers = np.column_stack([p - labels[block], np.full(len(block), p * (1 - p))])
            count = min(round(share * len(block)), len(block) - 2)
            space = null_vectors(numbers, count, rng)
            seen = answer(truth.astype(np.float64), space)
            point = seen
            for _ in range(300):
                point = seen + space @ (space.T @ (np.clip(point, 0.0, 1.0) - seen))
            right.append(float(((point > 0.5) == truth).mean()))
        found[f"{share:g}"] = float(np.mean(right))
    return found


def as_it_runs(
    columns: Floats, labels: NDArray[np.bool_], rng: Generator
) -> dict[str, dict[str, float]]:
    """SMM-2 with 32 bins a column: labels found, by share of the null space and answers.

    Blocks have twice as many rows as columns of the matrix. Every second candidate is asked about
    at a time, beside 8 columns of random bits and one of normal values, so a level gives two
    answers.
    """
    n_rows = max(SETTINGS.block_rows, 2 * (31 * columns.shape[1] + 10))
    found: dict[str, dict[str, float]] = {}
    for share in SETTINGS.shares:
        right: dict[str, list[float]] = {"guessing": [], "1": [], "2": []}
        for _ in range(SETTINGS.most_blocks):
            block = rng.permutation(len(columns))[:n_rows]
            decoys = rng.integers(0, 2, (n_rows, 8)).astype(np.bool_)
            bits = np.column_stack([split_matrix(columns[block], 31)[:, ::2], decoys])
            left = n_rows - 1 - int(np.linalg.matrix_rank(bits.astype(np.float64)))
            for answers in ("1", "2"):
                of_rows = share * left / n_rows
                one = labels_from_answers(labels[block], bits, of_rows, rng, int(answers))
                right[answers].append(one.best)
            right["guessing"].append(one.baseline)
        found[f"{share:g}"] = {name: float(np.mean(values)) for name, values in right.items()}
    return found


def show(dataset: str, found: dict[str, Any]) -> None:
    console = Console(width=120)
    shown = Table(title=f"{dataset}: SMM, shares of entries, labels or rows that are found")
    for name in ("what", "guessing", *(f"r = {100 * s:g} %" for s in SETTINGS.shares)):
        shown.add_column(name, justify="left" if name == "what" else "right")
    shares = [f"{s:g}" for s in SETTINGS.shares]
    for way in ("smm-1", "smm-2"):
        for attack in found[way][shares[0]]:
            cells = [found[way][share][attack] for share in shares]
            plain = f"{cells[0]['baseline']:.3f}"
            if attack == "splits, 1 trees":
                rounded = (f"{one['rounding']:.3f}" for one in cells)
                shown.add_row(f"{way} {attack}, rounded", plain, *rounded)
            best = (f"{one['best']:.3f}" for one in cells)
            shown.add_row(f"{way} {attack}", plain, *best)
    runs = found["labels from SMM-2 with 32 bins"]
    for answers in ("1", "2"):
        name = f"smm-2 labels, 32 bins, {answers} answers"
        cells = (f"{runs[share][answers]:.3f}" for share in shares)
        shown.add_row(name, f"{runs[shares[0]]['guessing']:.3f}", *cells)
    plain = found["alternating projections, SMM-1, 1 tree"]
    shown.add_row("smm-1, alternating projections", "", *(f"{plain[s]:.3f}" for s in shares))
    told = (f"{SKETCH[s]:.2f}" if s in SKETCH else "" for s in SETTINGS.shares)
    shown.add_row("the same, as sketched before", "", *told)
    console.print(shown)
    show_labels(console, dataset, found)
    spaces = Table(title=f"{dataset}: columns of the passive party, by the splits of {TREES} trees")
    for name in ("column", "splits", "cells", "rank correlation", "bits", "of bits"):
        spaces.add_column(name, justify="left" if name == "column" else "right")
    for name, one in found["columns from splits"].items():
        spaces.add_row(
            name, f"{one['n_splits']}", f"{one['n_cells']}",
            "" if one["rank_correlation"] is None else f"{one['rank_correlation']:.3f}",
            f"{one['bits']:.2f}", f"{one['of_bits']:.2f}",
        )  # fmt: skip
    console.print(spaces)


def show_labels(console: Console, dataset: str, found: dict[str, Any]) -> None:
    shown = Table(
        title=f"{dataset}: labels guessed right (most frequent: {found['base rate']:.3f})"
    )
    shown.add_column("from")
    for epsilon in SETTINGS.epsilons:
        shown.add_column(f"epsilon {epsilon:g}", justify="right")
    plain = found["labels without protection"]["accuracy"]
    shown.add_row("plain gradients", *[f"{plain:.3f}"] * len(SETTINGS.epsilons))
    for mechanism, by_epsilon in found["labels under noise, by epsilon of a tree"].items():
        cells = (f"{one['accuracy']:.3f}" for one in by_epsilon.values())
        shown.add_row(f"{mechanism}, each of {TREES} trees", *cells)
    once = found["labels randomised once"].values()
    shown.add_row("labels randomised once", *(f"{one['accuracy']:.3f}" for one in once))
    console.print(shown)


if __name__ == "__main__":
    main()
