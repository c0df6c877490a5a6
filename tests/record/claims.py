"""What is recorded of each paper: the claims of benchmarks/README.md and of docs/papers.md."""

from __future__ import annotations

from tests.record import grislain, gubler, le, li, maddock
from tests.record.blocks import published, result, span, table, times


def coverage_block() -> str:
    """Each published table and figure: how much of it is in a result file."""
    return table(
        ("published", "recorded", "fits", "result file"),
        [*_maddock(), *_grislain(), *_gubler(), *_le(), *_li()],
    )


def _maddock() -> list[tuple[str, ...]]:
    found, lines = maddock.cells(), []
    for number in (3, 4, 5, 9, 10, 11, 12):
        every = list(maddock.printed(number))
        known = [found[k] for row, data, *_ in every if (k := (number, row, data)) in found]
        lines.append(
            (f"Maddock 2022, table {number}", f"{len(known)} of {len(every)} cells",
             span(cell["fits"] for cell in known), "`maddock_tables.json`")
        )  # fmt: skip
    document = result("maddock_tables")
    ranks = document["ranks"]
    lines.append(
        ("Maddock 2022, table 6", f"{len(ranks)} of 3 epsilons, {len(ranks[0]['methods'])} methods",
         span(one["fits"] for one in ranks), "`maddock_tables.json`")
    )  # fmt: skip
    splits = [found[n, row, d] for n, row, d in found if row in maddock.SPLITS]
    lines += [
        ("Maddock 2022, figures 2c and 6c to 9c", f"{len(maddock.pictures())} of 5, at depth 4",
         span(cell["fits"] for cell in splits), "`maddock_tables.json`"),
        ("Maddock 2022, all other figures of 1 to 20", "none", "0", "none"),
        ("Maddock 2022, one row a client", times(len(result("one_row")["fits"]), "fit"), "1",
         "`one_row.json`"),
    ]  # fmt: skip
    for name in maddock.experiments():
        cells = maddock.cells(name)
        lines.append(
            (f"Maddock 2022, experiment {name.removeprefix('maddock_')}", times(len(cells), "cell"),
             span(cell["fits"] for cell in cells.values()), f"`{name}.json`")
        )  # fmt: skip
    return lines


def _grislain() -> list[tuple[str, ...]]:
    document, known = published("dpxgboost2021"), grislain.entries()
    wanted = [(d, "paper's settings", e) for d in grislain.TITLES for e in document["epsilons"]]
    fits = [len(known[key]) for key in wanted if key in known]
    file = "`dpxgboost_table.json`"
    return [
        ("Grislain 2021, figure 4", f"{len(fits)} of {len(wanted)} private cells", span(fits),
         file),
        *(
            (f"Grislain 2021, figure {figure}", f"{sum(map(len, lines.values()))} points",
             span(len(errors) for line in lines.values() for errors in line.values()), file)
            for figure in grislain.recorded()
            if (lines := grislain.points(figure))
        ),
        *(
            (f"Grislain 2021, figure {figure}", "none", "0", "none")
            for figure in sorted({*grislain.POINTS} - {*grislain.recorded()})
        ),
        ("Grislain 2021, seconds a tree", "2 settings",
         str(result("dpxgboost_table")["runtime"]["repeats"]), file),
    ]  # fmt: skip


def _gubler() -> list[tuple[str, ...]]:
    record, file = gubler.record(), "`private_tree.json`"
    lines = []
    for number, n in gubler.FIGURES.items():
        rounds = [one["rounds"] for k, one in record["panels"].items() if k.startswith(f"n={n} ")]
        lines.append(
            (f"Gubler 2023, figure {number}", f"{len(rounds)} of 12 panels", span(rounds), file)
        )
    shares = [key for key in record["cells"] if key.startswith("shares ")]
    rounds = {int(key.rpartition("#")[2]) for key in shares}
    wanted = len(record["shares"]["saving"]) + len(record["shares"]["plain"])
    lines.append(("Gubler 2023, figure 2", f"{wanted} shares", str(len(rounds)), file))
    panels = result("private_tree_written")["panels"]
    lines.append(
        ("Gubler 2023, algorithms 5 and 6 to the letter", f"{len(panels)} panels",
         span(one["rounds"] for one in panels.values()), "`private_tree_written.json`")
    )  # fmt: skip
    return lines


def _le() -> list[tuple[str, ...]]:
    file, lines = "`fedxgboost_tables.json`", []
    for number, dataset in ((1, "credit1_full"), (2, "credit2")):
        ways = [way for way, key in le.TIMES.items() if key]
        fits = [len(le.repetitions(dataset, way)) for way in ways]
        known = sum(map(bool, fits))
        lines.append((f"Le 2021, table {number}", f"{known} of {len(ways)} rows", span(fits), file))
    for number, dataset in ((4, "credit1_full"), (5, "credit2")):
        fits = [len(le.repetitions(dataset, way)) for way in le.LOSSES]
        text = f"{sum(map(bool, fits))} curves of 20 trees"
        lines.append((f"Le 2021, figure {number}", text, span(fits), file))
    return lines


def _li() -> list[tuple[str, ...]]:
    file, lines = "`simfl_tables.json`", []
    names = published("simfl2020")["datasets"]
    theirs = [method for method in li.METHODS if method not in li.THEIRS]
    for number, (_, theta) in li.TABLES.items():
        every = [len(li.errors(data, way, theta, 2)) for data in names for way in theirs]
        fits = [one for one in every if one]
        text = f"{len(fits)} of {len(every)} cells ({len(li.RECORDED)} of {len(names)} data sets)"
        lines.append((f"Li 2020, table {number}", text, span(fits), file))
    fits = [len(li.errors(d, m, *p)) for d in li.RECORDED for m in li.LINES for p in li.POINTS]
    text = f"{sum(map(bool, fits))} points, {len(li.RECORDED)} of {len(names)} data sets"
    lines.append(("Li 2020, figures 2 to 4", text, span(fits), file))
    known = [name for name in names if li.ten_parties(name)]
    lines.append(("Li 2020, table 4", f"{len(known)} of {len(names)} data sets", "1", file))
    return lines


def blocks() -> dict[str, str]:
    return {"coverage": coverage_block()}
