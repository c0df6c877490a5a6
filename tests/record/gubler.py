"""Gubler 2023: panels of figures 3 to 5, figure 2, one informative column, real tables."""

from __future__ import annotations

from typing import Any

from tests.record.blocks import NONE, result, span, table

EPSILONS = ("0.5", "1", "2", "5", "10")
FIGURES = {3: 250, 4: 1000, 5: 100}


def record() -> dict[str, Any]:
    found: dict[str, Any] = result("private_tree")
    return found


def short(share: float) -> str:
    """.832, as tables write it."""
    return f"{share:.3f}".removeprefix("0").replace("-0.", "-.")


def panel_block(number: int) -> str:
    """A figure of twelve panels: accuracy with saving / without, by epsilon."""
    lines = []
    for name, one in record()["panels"].items():
        if not name.startswith(f"n={FIGURES[number]} "):
            continue
        mean = one["mean"]
        pairs = (f"{short(mean[f'saving {e}'])} / {short(mean[f'plain {e}'])}" for e in EPSILONS)
        words = name.partition(" ")[2].replace("=", " ").replace("p ", "", 1)
        columns, depth, rho = words.split(" depth ")[0], *words.split(" depth ")[1].split(" rho ")
        lines.append(
            (columns, depth, rho, *pairs, short(mean["local"]), short(mean["central"]),
             one["rounds"])
        )  # fmt: skip
    head = ("columns", "depth", "rho", *(f"epsilon {e}" for e in EPSILONS), "local", "central",
            "rounds")  # fmt: skip
    return table(head, lines)


def trends_block() -> str:
    """What the report says of its figures, asked of the record."""
    panels = record()["panels"]
    lines = []
    for words, test, epsilons, chosen in (
        ("saving is above no saving, all panels", "saving above plain", ("2", "5"), ""),
        ("the same with 50 columns", "saving above plain", ("2", "5"), " p=50 "),
        ("saving is above the tree of one party, rho = 0.9", "saving above local",
         ("2", "5", "10"), "rho=0.9"),
        ("the same, rho = 0.3", "saving above local", ("2", "5", "10"), "rho=0.3"),
    ):  # fmt: skip
        gains = [
            one["tests"][f"{test} {epsilon}"]["gain"]
            for name, one in panels.items()
            if chosen in name
            for epsilon in epsilons
        ]
        holds = sum(gain > 0 for gain in gains)
        lines.append(
            (words, ", ".join(epsilons), f"{holds} of {len(gains)}",
             f"{short(min(gains))} to {short(max(gains))}")
        )  # fmt: skip
    return table(("the report says", "at epsilon", "holds in", "gain in accuracy"), lines)


def lower_block() -> str:
    """Panels where the report's ordering does not hold, each with its one-sided test."""
    lines = []
    for name, one in {**record()["panels"], **record()["one_column"]}.items():
        for epsilon in EPSILONS:
            test = one["tests"][f"saving above plain {epsilon}"]
            if round(test["gain"], 3) < 0:
                lines.append((name, epsilon, short(test["gain"]), f"{1 - test['p']:.2f}"))
    return table(("panel", "epsilon", "saving less no saving", "p that it is lower"), lines)


def shares_block() -> str:
    """Figure 2: accuracy by leaf share, without saving, and by both shares with saving."""
    shares = record()["shares"]
    leaves = list(shares["plain"])
    bounds = list(dict.fromkeys(key.split()[1] for key in shares["saving"]))
    lines = [
        (leaf, short(shares["plain"][leaf]), *(short(shares["saving"][f"{leaf} {b}"])
                                               for b in bounds))
        for leaf in leaves
    ]  # fmt: skip
    head = ("leaf_share", "no saving", *(f"saving, bounds_share {b}" for b in bounds))
    return table(head, lines)


def one_column_block() -> str:
    lines = []
    for key, one in record()["one_column"].items():
        _, _, _, columns, n = key.replace("n=", "").split()
        for epsilon in ("1", "2", "5"):
            mean = one["mean"]
            lines.append(
                (f"{int(n):,}", columns, epsilon, short(mean[f"saving {epsilon}"]),
                 short(mean[f"plain {epsilon}"]), short(mean["local"]), one["rounds"])
            )  # fmt: skip
    head = ("rows", "columns", "epsilon", "saving", "no saving", "one party alone", "rounds")
    return table(head, lines)


WRITTEN = {
    "algorithm 5": ("5", "5"), "algorithm 6": ("6", "5"),
    "algorithm 6, bounds paid": ("6, bounds paid", "5"),
    "algorithm 5, as its program": ("5, program", "5"),
    "algorithm 6, as its program": ("6, program", "5, program"),
}  # fmt: skip


def _written() -> dict[str, Any]:
    panels: dict[str, Any] = result("private_tree_written")["panels"]
    return {key: one for key, one in panels.items() if key.startswith("n=")}


def written_block() -> str:
    """Algorithms 5 and 6 to the letter: mean accuracy of all panels, beside ours."""
    panels, lines = _written().values(), []
    for words, (form, base) in WRITTEN.items():
        means = [
            short(sum(one["mean"][f"{form} {e}"] for one in panels) / len(panels)) for e in EPSILONS
        ]
        above = NONE
        if form.startswith("6"):
            gains = [one["tests"][f"{form} above {base} {e}"]["gain"]
                     for one in panels for e in ("2", "5")]  # fmt: skip
            above = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
        cost = NONE
        if form.startswith("6"):
            costs = [one["mean"][f"cost of {form} {e}"] for one in panels for e in EPSILONS]
            cost = f"{min(costs):.2f} to {max(costs):.1f}"
        lines.append((words, *means, above, cost))
    for words, name in (("ours, no saving", "plain"), ("ours, saving", "saving")):
        means = [
            short(sum(one["mean"][f"ours, {name} {e}"] for one in panels) / len(panels))
            for e in EPSILONS
        ]
        lines.append((words, *means, NONE, "1"))
    head = ("mean of the panels", *(f"epsilon {e}" for e in EPSILONS),
            "above algorithm 5 at 2 and 5", "spent, of the epsilon it names")  # fmt: skip
    return table(head, lines)


def asked_block() -> str:
    """Figures 3 to 5 where bounds are asked in every node: algorithm 6 with bounds paid."""
    lines = []
    for name, one in _written().items():
        mean = one["mean"]
        shown = (
            f"{short(mean[f'6, bounds paid {e}'])} / {short(mean[f'5 {e}'])} / "
            f"{short(mean[f'ours, saving {e}'])}"
            for e in EPSILONS
        )
        lines.append((name.replace("=", " "), *shown, one["rounds"]))
    return table(("panel", *(f"epsilon {e}" for e in EPSILONS), "rounds"), lines)


def asked_shares_block() -> str:
    """Figure 2 with bounds asked in every node."""
    shares = result("private_tree_written")["shares"]
    leaves = list(dict.fromkeys(key.split()[0] for key in shares))
    bounds = list(dict.fromkeys(key.split()[1] for key in shares))
    lines = [
        (leaf, short(shares[f"{leaf} {bounds[0]}"]["5 2"]),
         *(short(shares[f"{leaf} {b}"]["6, bounds paid 2"]) for b in bounds))
        for leaf in leaves
    ]  # fmt: skip
    head = ("leaf_share", "algorithm 5", *(f"6, bounds_share {b}" for b in bounds))
    return table(head, lines)


def rounds() -> str:
    panels = record()["panels"]
    return f"{len(panels)} panels, {span(one['rounds'] for one in panels.values())} rounds each"


def blocks() -> dict[str, str]:
    return {
        "trends": trends_block(),
        "lower": lower_block(),
        "figure 2": shares_block(),
        **{f"figure {number}": panel_block(number) for number in FIGURES},
        "one column": one_column_block(),
        "written": written_block(),
        "asked shares": asked_shares_block(),
        "asked": asked_block(),
    }
