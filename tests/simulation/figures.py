"""Figures of the simulator in documents: ``python -m tests.simulation.figures`` writes them.

Each stands between two comments; a test compares what is there with what the results say.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hedgerow.testing.simulation.states import OFTEN, RECOVERIES, STATES
from tests.simulation.defects import RESULT as DEFECTS

ROOT = Path(__file__).parents[2]
CAMPAIGN = ROOT / "benchmarks" / "results" / "simulation.json"
AIM = 100_000  # histories
PAGES = (ROOT / "README.md", ROOT / "docs" / "simulation.md")


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def _counted(counts: dict[str, int], prefix: str) -> list[tuple[object, ...]]:
    found = {name.removeprefix(prefix): n for name, n in counts.items() if name.startswith(prefix)}
    return [(name, f"{found[name]:,}") for name in sorted(found, key=lambda n: (-found[n], n))]


def _fail_points(counts: dict[str, int]) -> list[tuple[object, ...]]:
    found: dict[str, int] = {}
    for name, number in counts.items():
        if name.startswith("fail point "):
            place = name.removeprefix("fail point ").partition(" at ")[0]
            found[place] = found.get(place, 0) + number
    return [(f"`{name}`", f"{found[name]:,}") for name in sorted(found)]


def _rare(rare: dict[str, int]) -> str:
    if not rare:
        return f"All {len(STATES)} states below were reached {OFTEN} times or more."
    rarest = min(rare, key=lambda name: rare[name])
    often = len(STATES) - len(rare)
    return (
        f"{often} of {len(STATES)} states were reached {OFTEN} times or more; the rarest, "
        f"`{rarest}`, was reached {rare[rarest]} times. The record lists those below {OFTEN}."
    )


def _broken(campaign: dict[str, Any]) -> str:
    """How many seeds broke a rule, and whether the same seeds still do."""
    failures = campaign["failures"]
    mended = sum(bool(one["mended"]) for one in failures)
    words = f"{len(failures)} violation{'' if len(failures) == 1 else 's'} of a rule"
    return f"{words}, {mended} of them mended since" if failures else words


def _how_far(histories: int) -> str:
    if histories >= AIM:
        return ""
    return f" The aim is {AIM:,}: `make campaign` goes on from here."


def _parts(parts: list[dict[str, Any]]) -> str:
    if not parts:
        return "This record was made before records had parts."
    head = ("source", "commit", "seeds", "histories", "violations")
    return _table(
        head,
        [
            (
                f"`{part['source'][:12]}`", f"`{part['commit'][:12]}`" if part["commit"] else "",
                ", ".join(f"{start:,} to {stop - 1:,}" for start, stop in part["seeds"]),
                f"{part['histories']:,}", part["violations"],
            )
            for part in parts
        ],
    )  # fmt: skip


def figures() -> dict[str, str]:
    """By name: the text that belongs between the two comments of that name."""
    campaign = json.loads(CAMPAIGN.read_text())
    defects: dict[str, Any] = json.loads(DEFECTS.read_text())["defects"]
    counts, said = campaign["counts"], "{:,}".format
    summary = (
        f"{said(campaign['histories'])} histories, {said(campaign['faults'])} faults, "
        f"{said(campaign['releases'])} releases: {_broken(campaign)}"
    )
    slowest = max(defects.values(), key=lambda one: one["histories"])["histories"]
    per_history = campaign["processor_seconds"] / campaign["histories"]
    return {
        "summary": summary + ".",
        "campaign": (
            f"**{summary}**, over {said(campaign['simulated_days'])} simulated days. The median "
            f"history has {campaign['median_faults']} faults and {campaign['median_finished']} "
            f"finished command; one took {1000 * per_history:.0f} ms of a processor that others "
            f"used, too.{_how_far(campaign['histories'])}"
        ),
        "parts": _parts(campaign.get("parts", [])),
        "rare": _rare(campaign["rare"]),
        "faults": _table(("fault", "times"), _counted(counts, "fault ")),
        "lies": _table(("lie of the coordinator", "times"), _counted(counts, "lie: ")),
        "refusals": _table(("refusal", "times"), _counted(counts, "refusal ")),
        "fail points": _table(("fail point", "passed"), _fail_points(counts)),
        "retries": _table(
            ("what followed", "times"),
            [(words, f"{counts.get(name, 0):,}") for name, words in RECOVERIES.items()],
        ),
        "defects": _table(
            ("planted defect", "histories", "rule that it breaks"),
            [(name, f"{one['histories']:,}", one["rule"]) for name, one in defects.items()],
        ),
        "slowest": f"{len(defects)} defects are planted; the slowest to find takes {slowest:,}.",
    }


def written(text: str) -> str:
    """A page with its figures."""
    for name, figure in figures().items():
        start, end = f"<!-- simulation: {name} -->", f"<!-- end of {name} -->"
        block = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        around = "\n\n" if figure.startswith("|") else "\n"
        text = block.sub(lambda _: f"{start}{around}{figure}{around}{end}", text)  # noqa: B023
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
