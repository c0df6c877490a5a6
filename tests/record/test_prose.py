"""Numbers inside of sentences are those of the result files, on the pages that have most of them.

Tables are blocks (test_pages.py); here a sentence is written anew and looked for on its page.
"""

from __future__ import annotations

import re
from statistics import mean, stdev
from typing import Any

import pytest

from tests.record import audit, grislain, le, li
from tests.record.blocks import ROOT, published, result

PAPER, BARE = "paper's settings", "XGBoost, paper's"
OWN_ROUND = "a party's round"


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


def says(name: str, *sentences: str) -> None:
    text = page(name)
    for sentence in sentences:
        assert sentence in text, f"{name} does not say: {sentence}"


def _required(group: str, what: str) -> float:
    """By how much the default method is better, as accuracy.json records it."""
    found = [
        one["shown"]
        for one in result("accuracy")["requirements"]
        if one["group"].startswith(group) and one["what"].startswith(what)
    ]
    number = re.search(r"better by ([+-][0-9.]+)", found[0])
    assert number
    return float(number[1])


def _accuracy(dataset: str, method: str, epsilon: float | None) -> float:
    measure = {"covtype7": "accuracy"}.get(dataset, "auc")
    (one,) = [
        e for e in result("accuracy")["results"]
        if (e["dataset"], e["method"], e["epsilon"]) == (dataset, method, epsilon)
    ]  # fmt: skip
    return mean(one[measure])


def test_goals_of_the_page_about_accuracy() -> None:
    best, ebm = "epsilon 0.1 at least the best of Maddock", "above DP-EBM"
    gains = [_required(best, name) for name in published("maddock2022_best")["best"]]
    assert sum(gain > 0 for gain in gains) == 5
    far = [_required("epsilon 1 within", name) for name in ("adult", "bank", "nomao6", "higgs")]
    says(
        "accuracy.md",
        "reaches the best published private boosting on five of six tables (on credit1 by "
        f"{_required(best, 'credit1'):.4f}; nomao6 is {-_required(best, 'nomao6'):.3f} short)",
        f"stay {min(-f for f in far):.3f} to {max(-f for f in far):.3f} below XGBoost",
        f"except on credit1 ({_required(ebm, 'credit1 at 0.1'):.4f};",
        f"and nomao6 ({_required(ebm, 'nomao6 at 0.1'):.4f})",
        f"one cell (nomao6 at 0.01: {_accuracy('nomao6', 'auto', 0.01):.3f} and "
        f"{_accuracy('nomao6', 'interpret', 0.01):.3f})",
    )
    lost = [
        one["what"] for one in result("accuracy")["requirements"]
        if one["group"].startswith(ebm) and float(one["shown"].split()[2]) < 0
    ]  # fmt: skip
    assert lost == ["nomao6 at 0.01"]
    assert _accuracy("covtype7", "auto", 4.0) > _accuracy("covtype7", "xgboost", None)
    assert _accuracy("covtype", "auto", 1.0) > _accuracy("covtype", "xgboost", None)


def test_the_page_about_dp_xgboost() -> None:
    known, record = grislain.entries(), result("dpxgboost_table")
    shown = {key: grislain.shown(errors) for key, errors in known.items()}
    times = {name: record["runtime"][name] for name in (PAPER, "own settings")}
    told = published("dpxgboost2021")["seconds_per_tree_covtype"]

    def seconds(name: str) -> str:
        one = times[name]
        return (
            f"{one['per tree']['private cpu']:.3f} and {one['per tree']['noise off cpu']:.3f} "
            f"({one['ratio']['cpu']:.2f} times, {one['ratio']['seconds']:.2f} by the clock)"
        )

    classes = [mean(known["synthetic-classes", "own settings", e]) for e in (1.0, 2.0)]
    says(
        "dp-xgboost.md",
        f"(adult at epsilon 2, {shown['adult', PAPER, 2.0]} against 18,",
        f"not private, has {shown['covtype', BARE, None]} there",
        f"the authors' package has {shown['covtype', 'dp-xgboost of PyPI', 1.0]} at epsilon 1",
        f"the defaults ({mean(known['abalone', 'own settings', 1.0]):.2f}, five splits)",
        f"({classes[0]:.2f} and {classes[1]:.2f} against",
        f"{seconds(PAPER)} with the paper's settings",
        f"{seconds('own settings')} with the defaults",
        f"The paper has {told['private']} and {told['not_private']} "
        f"({told['private'] / told['not_private']:.1f} times)",
    )


def test_auto_is_ahead_of_dp_xgboost_everywhere_as_the_page_says() -> None:
    known, document = grislain.entries(), published("dpxgboost2021")
    for dataset in grislain.TITLES:
        for place, epsilon in enumerate(document["epsilons"]):
            ours = mean(known[dataset, "auto", epsilon])
            for method in ("paper's settings", "own settings", "own, with delta"):
                assert ours < mean(known[dataset, method, epsilon]), (dataset, epsilon, method)
            assert ours < document[dataset]["private"][place], (dataset, epsilon)


def test_the_page_about_vertical_parties() -> None:
    one, other = audit.record(), audit.record("credit2")
    age, exponents = one["columns from splits"]["age"], result("vertical_scaling")["exponents"]
    projected = one["alternating projections, SMM-1, 1 tree"]
    guessing = one["smm-1"]["0.5"]["splits, 1 trees"]["baseline"]
    narrow, wide = one["smm-2"]["0.95"], other["labels from SMM-2 with 32 bins"]["0.95"]
    says(
        "vertical.md",
        f"correlation of {age['rank_correlation']:.2f} with the true one, and "
        f"{age['bits']:.2f} of its {age['of_bits']:.2f} bits",
        f"they find {100 * projected['0.1']:.0f} %, {100 * projected['0.5']:.0f} % and "
        f"{100 * projected['0.9']:.0f} % (guessing {100 * guessing:.1f} %)",
        f"finds {wide['1']:.3f} of the labels, where guessing finds {wide['guessing']:.3f}",
        f"of {narrow['labels, 1 answers']['baseline']:.3f} by guessing, one answer at r = 95 % of "
        f"the rows makes {narrow['labels, 1 answers']['best']:.3f}, and 20 answers make "
        f"{narrow['labels, 20 answers']['best']:.3f}",
        f"The most frequent label is {one['base rate']:.3f} of all",
        f"exponents of {exponents['none']:.2f} (`none`) and {exponents['ldp']:.2f} (`ldp`)",
    )


@pytest.mark.parametrize("dataset", le.DATASETS)
def test_labels_randomised_once_are_better_than_noise_in_every_tree(dataset: str) -> None:
    def auc(way: str) -> float:
        return mean(one["auc"] for one in le.repetitions(dataset, way))

    each = [way for way in le.LOSSES if way.startswith("LDP") and way.endswith("1 a tree")]
    assert all(auc("labels once, 1 in all") > auc(way) for way in each)


def test_hours_of_paillier_are_those_of_the_record() -> None:
    """50 trees, the default, of the 105,000 training rows of the table with 150,000."""
    one = le.least("credit1_full", "Paillier")
    assert one is not None
    assert one["trees"] == 1
    hours = 50 * one["processor"] / 3600
    says(
        "vertical.md",
        f"105,000 rows take about {hours:.1f} hours of CPU here "
        f"(extrapolated from {one['extrapolated_from']:,})",
    )


OTHERS = {
    "TFL, one block a party": ("tfl",), "TFL, turns after every tree": ("tfl-round-robin",),
    "the better SOLO": ("solo-a", "solo-b"), "ALL-IN": ("all-in",),
    "the paper's algorithm": ("simfl-paper",),
}  # fmt: skip


def _by_split(dataset: str, theta: float | None, method: str) -> dict[int, float]:
    wanted: dict[str, Any] = {"dataset": dataset, "method": method, "trees": 500}
    if method != "all-in":
        wanted |= {"theta": theta, "parties": 2}
    cells = result("simfl_tables")["cells"]
    return {cell["seed"]: cell["error"] for cell in cells if wanted.items() <= cell.items()}


@pytest.mark.parametrize("name", OTHERS)
def test_differences_of_simfl_are_taken_split_by_split(name: str) -> None:
    lines = (ROOT / "docs" / "simfl.md").read_text(encoding="utf-8")
    table = lines.split("SimFL less the other")[1].split("\n\n")[1]
    (line,) = [one for one in table.splitlines() if one.startswith(f"| {name} |")]
    shown = [cell.strip() for cell in line.strip("|").split("|")][1:]
    expected = []
    for dataset in li.RECORDED:
        for theta in (0.8, None):
            ours = _by_split(dataset, theta, "simfl")
            means = {way: mean(_by_split(dataset, theta, way).values()) for way in OTHERS[name]}
            other = _by_split(dataset, theta, min(means, key=lambda way: means[way]))
            apart = [ours[seed] - other[seed] for seed in sorted(ours)]
            error = stdev(apart) / len(apart) ** 0.5
            expected.append((mean(apart), error, sum(a < 0 for a in apart)))
    for text, (difference, error, won) in zip(shown, expected, strict=True):
        found = re.fullmatch(r"([+-]?[0-9.]+) \(([0-9.]+)\), (\d)", text)
        assert found, text
        assert float(found[1]) == pytest.approx(difference, abs=0.0051)
        assert float(found[2]) == pytest.approx(error, abs=0.0051)
        assert int(found[3]) == won


@pytest.mark.parametrize(("dataset", "parties"), [("a9a", 2), ("a9a", 10), ("higgs", 2)])
def test_bytes_of_simfl(dataset: str, parties: int) -> None:
    words = {2: "two parties, balanced", 10: "ten parties"}[parties]
    lines = (ROOT / "docs" / "simfl.md").read_text(encoding="utf-8").splitlines()
    (line,) = [one for one in lines if one.startswith(f"| {dataset}, {words} |")]
    shown = [float(cell.strip().removesuffix(" MB")) for cell in line.strip("|").split("|")[1:]]
    kind = {"dataset": dataset, "theta": None, "parties": parties, "method": "simfl", "trees": 500}
    cells = [c for c in result("simfl_tables")["cells"] if kind.items() <= c.items()]
    sent = [
        mean(sum(c["bytes"].get(k, 0) for k in kinds) for c in cells) / 1e6
        for kinds in (("facts", "tables", "places"), ("sums", "leaves", "trees"))
    ]
    theirs = cells[0]["published_bytes"]
    formula = [theirs["preprocessing"] / 1e6, theirs["training"] / 1e6]
    expected = [sent[0], formula[0], sent[1], formula[1]]
    assert shown == [pytest.approx(one, rel=0.03) for one in expected]


def test_the_page_about_performance() -> None:
    scaling, parties = result("scaling"), result("parties")
    goals = {one["what"]: one for one in scaling["requirements"]}
    rows, columns = (goals[f"exponent of time in {name}"]["cpu"] for name in ("rows", "columns"))
    cells = scaling["cells"]

    def least(name: str, unit: str) -> float:
        return float(min(one[unit] for one in cells[name]))

    alone = "1 parties, trust coordinator"
    twenty, many = (
        {unit: least(f"{n} parties, trust coordinator", unit) / least(alone, unit)
         for unit in ("cpu", "wall")} for n in (20, 200)
    )  # fmt: skip
    large = goals["200 parties over one party on the same 10,000,000 rows, trust coordinator"]
    one_party = [name for name in cells if "parties" not in name or name.startswith("1 parties")]
    bound = max(one["above_mb"] / one["bound_mb"] for name in one_party for one in cells[name])
    round_ = parties["million"]
    says(
        "performance.md",
        f"an exponent of {rows:.2f} in rows and {columns:.2f} in columns",
        f"20 parties take {twenty['cpu']:.2f} times the CPU seconds of one and 200 take "
        f"{many['cpu']:.2f} times ({many['wall']:.2f} by the clock)",
        f"on 10,000,000 rows 200 take {large['cpu']:.2f} times ({large['wall']:.2f})",
        f"memory was at most {bound:.2f} of its bound",
        f"(exponent {parties['exponents']['CPU']:.2f};".replace(" 0.", " ."),
        f"a party's own round {round_[OWN_ROUND + ', milliseconds']:.1f} ms and "
        f"{round_[OWN_ROUND + ', kB']:.0f} kB",
    )


def test_the_page_about_evaluations() -> None:
    record = result("private_evaluation")
    exact = record["exact"]
    repeats = {len(found) for cell in record["cells"] for found in cell["values"].values()}
    assert repeats == {100}
    says(
        "evaluation.md",
        f"on all of its {record['rows']:,} rows",
        f"The exact values are {exact['auc']:.4f}, {exact['accuracy']:.4f}, "
        f"{exact['log_loss']:.4f} (probabilities held above 0.01) and "
        f"{exact['calibration_error']:.4f}",
    )


def test_the_page_about_clusters() -> None:
    (rows,) = [
        one for one in result("dask_scaling")["requirements"]
        if one["what"] == "exponent of time in rows"
    ]  # fmt: skip
    cells = {name: runs[0] for name, runs in result("dask_scaling")["cells"].items()}
    small, large = cells["1,000,000 rows, 2 workers"], cells["20,000,000 rows, 2 workers"]
    more = [(large[unit] - small[unit]) / 19 for unit in ("cpu", "peak_mb")]
    says(
        "cluster.md",
        f"exponent of {rows['cpu']:.2f} in rows by CPU seconds ({rows['wall']:.2f} by the clock)",
        f"each further million takes some {more[0]:.0f} CPU seconds and {more[1]:.0f} MB",
    )


def test_the_page_about_the_console() -> None:
    record = result("console")
    seconds, most = record["seconds"], record["peak_mb"]
    says(
        "console.md",
        f"a ledger of {record['lines']:,} lines",
        f"the ledger's page opened in {seconds['/ledger']['first']:.2f} s the first time and "
        f"{1000 * seconds['/ledger']['median']:.0f} ms after that",
        f"the console's process took {most['console']:.0f} MB at most and the one with the ledger "
        f"{most['party']:.0f} MB",
        f"and took {seconds['/budget']['median']:.1f} and {seconds['/']['median']:.1f} s",
    )
