"""Maddock et al. 2022: the recorded cells beside the published ones, and what explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.record import drawing
from tests.record.blocks import NONE, RESULTS, published, result, span, table, times

FAR = 2.0  # published standard deviations
EPSILONS = {9: 0.1, 10: 0.25, 3: 0.5, 11: 0.75, 12: 1.0}
DATASETS = ("bank", "credit1", "credit2", "adult", "higgs", "nomao6")
SECTIONS = {4: "split_candidates", 5: "batched"}
SMALLER = {"higgs": "not comparable: 51,233 rows here, 200,000 there"}
# Experiments: result file, what was changed, and the words for it.
EXPERIMENTS = {
    "maddock_floor": "nearly empty leaves step too far: with `floor_deviations = 3.33`",
    "maddock_floor1": "nearly empty leaves step too far: with `floor_deviations = 1`",
    "maddock_bounds": "bounds of columns: with those of the rows, as published,",
    "maddock_gains": "gains here allow for counts below their noise: as released",
    "maddock_subtraction": "both sides of a drawn cut are asked here: one as the parent's rest",
    "maddock_cuts": "no cut is drawn here that parts nothing: all candidates drawn alike",
    "maddock_binned": "the lowest cut lies just above the least value here: with their 32 cuts",
    "maddock_forest": "with their noise, their shares as noisy ratios and their 32 cuts",
    "maddock_scalar": "two scalar queries there, one of a pair here: with their noise and cuts",
    "maddock_both": "both, bounds of the rows and `floor_deviations = 3.33`:",
    "maddock_authors": "all rules of the authors' program at once:",
}
Key = tuple[int, str, str]


def key_of(cell: dict[str, Any]) -> Key:
    return cell["table"], cell["row"], cell["dataset"]


def cells(name: str = "maddock_tables") -> dict[Key, dict[str, Any]]:
    """Cells of a record that have a published figure, or a row of the same table."""
    return {key_of(cell): cell for cell in result(name)["cells"] if cell["table"] != 6}


def experiments() -> dict[str, dict[Key, dict[str, Any]]]:
    return {name: cells(name) for name in EXPERIMENTS if (RESULTS / f"{name}.json").is_file()}


def printed(number: int) -> Iterator[tuple[str, str, float, float]]:
    """Row, dataset, mean and deviation of every published cell of a table."""
    document, section = published("maddock2022"), SECTIONS.get(number, f"table{number}")
    part, deviations = document[section], document[f"{section}_sd"]
    for row in part:
        if row not in ("epsilon", "datasets"):
            for place, dataset in enumerate(part["datasets"]):
                yield row, dataset, part[row][place], deviations[row][place]


def name_of(row: str) -> str:
    return row.replace("_", " ")


def apart(cell: dict[str, Any]) -> str:
    return f"{cell['in_sds']:+.1f}"


def table_block(number: int) -> str:
    """A published table: in each cell ours, published, how far apart, and fits."""
    found, rows = cells(), {}
    for row, dataset, mean, _ in printed(number):
        cell = found.get((number, row, dataset))
        text = f"{NONE} / {mean:.3f}"
        if cell is not None:
            text = f"{cell['mean']:.3f} / {mean:.3f} ({apart(cell)}; {cell['fits']})"
        rows.setdefault(row, {})[dataset] = text
    extra = [row for t, row, _ in found if t == number and row not in rows]
    for row in dict.fromkeys(extra):
        rows[row] = {
            dataset: f"{cell['mean']:.3f} ({cell['fits']})"
            for (t, other, dataset), cell in found.items()
            if (t, other) == (number, row)
        }
    names = [name for name in DATASETS if any(name in row for row in rows.values())]
    lines = [(name_of(row), *(row_[n] for n in names)) for row, row_ in rows.items()]
    return table(("", *names), lines)


def cause(cell: dict[str, Any]) -> str:
    """What an experiment of the record shows, or that none does."""
    if cell["dataset"] in SMALLER:
        return SMALLER[cell["dataset"]]
    tried = []
    for name, known in experiments().items():
        other = known.get(key_of(cell))
        if other is None:
            continue
        words = f"{EXPERIMENTS[name]} {other['mean']:.3f} ({times(other['fits'])}, {apart(other)})"
        if abs(other["in_sds"]) <= FAR:
            return words
        tried.append(words)
    return "cause not found" + (f"; tried: {'; '.join(tried)}" if tried else "")


def outside_block(below: bool) -> str:
    """Cells more than two published deviations below, or above, the published mean."""
    lines = [
        (
            cell["table"], name_of(cell["row"]), cell["dataset"],
            f"{cell['published']:.3f} ({cell['published_sd']:.3f})", f"{cell['mean']:.3f}",
            cell["fits"], apart(cell), cause(cell),
        )
        for cell in cells().values()
        if "in_sds" in cell and (cell["in_sds"] < -FAR if below else cell["in_sds"] > FAR)
    ]  # fmt: skip
    head = ("table", "row", "data", "published (sd)", "ours", "fits", "deviations", "cause")
    return table(head, lines)


def outside() -> list[dict[str, Any]]:
    """Cells further than two published deviations from the published mean."""
    return [cell for cell in cells().values() if abs(cell.get("in_sds", 0.0)) > FAR]


def first_cause(cell: dict[str, Any]) -> str | None:
    """The first experiment that brings a cell within two deviations."""
    for name, known in experiments().items():
        other = known.get(key_of(cell))
        if other is not None and abs(other["in_sds"]) <= FAR:
            return name
    return None


def causes_block() -> str:
    """How many of the cells outside each experiment brings within two deviations, first of all."""
    found = outside()
    small = [cell for cell in found if cell["dataset"] in SMALLER]
    firsts = [first_cause(cell) for cell in found if cell["dataset"] not in SMALLER]
    lines: list[tuple[object, ...]] = [
        (words.rstrip(":,"), f"`{name}.json`", firsts.count(name))
        for name, words in EXPERIMENTS.items()
        if name in firsts
    ]
    lines.append(("not comparable: fewer rows here", "", len(small)))
    lines.append(("not found", "", firsts.count(None)))
    return table(("cause", "experiment", "cells"), lines)


def families_block() -> str:
    """Each experiment over all cells outside that it was run on: distances before and after."""
    lines = []
    for name, known in experiments().items():
        both = [
            (cell["in_sds"], known[key_of(cell)]["in_sds"])
            for cell in outside()
            if key_of(cell) in known
        ]
        before, after = (sum(pair[i] for pair in both) / len(both) for i in (0, 1))
        within = sum(abs(pair[1]) <= FAR for pair in both)
        lines.append(
            (EXPERIMENTS[name].rstrip(":,"), len(both), f"{before:+.1f}", f"{after:+.1f}", within)
        )
    head = ("experiment", "cells", "mean deviations before", "after", "within two after")
    return table(head, lines)


def left_block() -> str:
    """The paper's requirement as one sentence."""
    total = sum(1 for number in (3, 4, 5, 9, 10, 11, 12) for _ in printed(number))
    found = outside()
    below = sum(cell["in_sds"] < 0 for cell in found)
    left = [c for c in found if c["dataset"] not in SMALLER and first_cause(c) is None]
    return (
        f"{len(found)} of {total} cells ({100 * len(found) / total:.0f} %) are outside two "
        f"published deviations, {below} of them below. With the cause of each put back, "
        f"{len(left)} ({100 * len(left) / total:.1f} %) are, besides one that has fewer rows here."
    )


def counts_block() -> str:
    """How many cells of each published table are recorded, and where they lie."""
    lines, found = [], cells()
    for number in (3, 4, 5, 9, 10, 11, 12):
        every = list(printed(number))
        known = [found[k] for row, data, *_ in every if (k := (number, row, data)) in found]
        below, above = (sum(sign * cell["in_sds"] > FAR for cell in known) for sign in (-1, 1))
        lines.append(
            (
                number, len(every), len(known), span(cell["fits"] for cell in known),
                len(known) - below - above, below, above,
            )
        )  # fmt: skip
    total = [sum(line[place] for line in lines) for place in (1, 2, 4, 5, 6)]
    lines.append(("all", total[0], total[1], "", *total[2:]))
    return table(
        ("table", "published cells", "recorded", "fits a cell", "within two deviations", "below",
         "above"), lines,
    )  # fmt: skip


def preset_block() -> str:
    """The preset `dp-tr-newton` and its literal form beside tables 3 and 9 to 12."""
    literal, preset = cells(), cells("maddock_floor")
    lines = []
    for number, epsilon in EPSILONS.items():
        shown = []
        for row, dataset, mean, _ in printed(number):
            if row == "totally_random_newton":
                key = (number, row, dataset)
                ours, other = preset.get(key), literal.get(key)
                shown.append(f"{mean:.3f}, {_short(ours)}, {_short(other)}")
        lines.append((f"epsilon {epsilon:g}", *shown))
    return table(("published, preset, literal", *(d for d in DATASETS if d != "higgs")), lines)


def preset_count_block() -> str:
    preset = [c for c in cells("maddock_floor").values() if c["row"] == "totally_random_newton"]
    keys = {key_of(cell) for cell in preset}
    literal = [cell for key, cell in cells().items() if key in keys]
    text = []
    for name, found in (("the preset", preset), ("the literal form", literal)):
        below, above = (sum(s * cell["in_sds"] > FAR for cell in found) for s in (-1, 1))
        text.append(
            f"{name} is below by more than two deviations in {below} of {len(found)} cells "
            f"and above in {above} ({span(cell['fits'] for cell in found)} fits a cell)"
        )
    return "; ".join(text).capitalize() + "."


def _short(cell: dict[str, Any] | None) -> str:
    return NONE if cell is None else f"{cell['mean']:.3f} ({apart(cell)})"


def ranks_block() -> str:
    """Table 6: average ranks, ours and published."""
    ranks = result("maddock_tables")["ranks"]
    lines = [
        (
            name_of(method),
            *(f"{one['ours'][i]:.2f} / {one['published'][i]:.2f}" for one in ranks),
        )
        for i, method in enumerate(ranks[0]["methods"])
    ]
    lines.append(("Spearman's correlation", *(f"{one['spearman']:.2f}" for one in ranks)))
    lines.append(("fits a cell", *(one["fits"] for one in ranks)))
    return table(("ours / published", *(f"epsilon {one['epsilon']:g}" for one in ranks)), lines)


def conclusions_block() -> str:
    return table(
        ("conclusion", "here", "figures"),
        [
            (one["conclusion"], "yes" if one["holds"] else "**no**", one["figures"])
            for one in result("maddock_tables")["conclusions"]
        ],
    )


SPLITS = ("totally_random_newton", "partially_random_newton", "hist_newton")


def _mean(row: str, dataset: str, number: int) -> float:
    found: float = cells()[number, row, dataset]["mean"]
    return found


def trends_block() -> str:
    """What the paper says of split methods and updates, of the cells of tables 3 and 9 to 12."""
    sets = tuple(name for name in DATASETS if name != "higgs")
    random, partly, histogram = SPLITS

    def count(claim: Callable[[str, int], bool]) -> str:
        asked = [claim(name, number) for name in sets for number in EPSILONS]
        return f"{sum(asked)} of {len(asked)}"

    def updates(better: str, worse: str, split: str, numbers: tuple[int, ...]) -> str:
        asked = [
            _mean(f"{split}_{better}", name, number) > _mean(f"{split}_{worse}", name, number)
            for name in sets
            for number in numbers
        ]
        return f"{sum(asked)} of {len(asked)}"

    lines = [
        ("totally random is above histogram at every epsilon",
         count(lambda name, n: _mean(random, name, n) > _mean(histogram, name, n))),
        ("totally random is above partially random",
         count(lambda name, n: _mean(random, name, n) > _mean(partly, name, n))),
        ("partially random is above histogram where epsilon is large (.5 to 1)",
         f"{sum(_mean(partly, d, n) > _mean(histogram, d, n) for d in sets for n in (3, 11, 12))}"
         " of 15"),
        ("at epsilon .1 and .25 averaging is above Newton (totally random)",
         updates("averaging", "newton", "totally_random", (9, 10))),
        ("at epsilon .75 and 1 Newton is above averaging (totally random)",
         updates("newton", "averaging", "totally_random", (11, 12))),
    ]  # fmt: skip
    return table(("the paper says", "cells where it holds"), lines)


def one_row_block() -> str:
    lines = []
    for one in result("one_row")["fits"]:
        more = one["megabytes"] - one["megabytes_before"]
        lines.append(
            (f"{one['clients']:,}", one["trust"], f"{one['cpu_seconds']:.1f}", f"{more:,}",
             f"{one['auc']:.3f}")
        )  # fmt: skip
    return table(("clients", "trust", "CPU seconds", "MB more", "AUC"), lines)


def pictures() -> dict[str, str]:
    """Split methods by epsilon, of each data set, with the published cells as circles."""
    drawn = {}
    for name in DATASETS:
        if name == "higgs":
            continue
        series: dict[str, list[tuple[float, float]]] = {}
        marks: dict[str, list[tuple[float, float]]] = {}
        for row in SPLITS:
            words = name_of(row).removesuffix(" newton").replace("hist", "histogram")
            for number, epsilon in EPSILONS.items():
                cell = cells()[number, row, name]
                series.setdefault(words, []).append((epsilon, cell["mean"]))
                marks.setdefault(words, []).append((epsilon, cell["published"]))
        title = f"{name}: split methods, Newton steps, depth 4"
        drawn[f"maddock2022-splits-{name}"] = drawing.lines(
            title, "epsilon", "test AUC", series, marks=marks
        )
    return drawn


def blocks() -> dict[str, str]:
    found = {f"table {number}": table_block(number) for number in (3, 4, 5, 9, 10, 11, 12)}
    return {
        "counts": counts_block(),
        "left": left_block(),
        "trends": trends_block(),
        "one row": one_row_block(),
        "causes": causes_block(),
        "families": families_block(),
        "below": outside_block(below=True),
        "above": outside_block(below=False),
        "preset": preset_block(),
        "preset count": preset_count_block(),
        "ranks": ranks_block(),
        "conclusions": conclusions_block(),
        **found,
    }
