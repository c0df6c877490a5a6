"""Which tables a model was trained on, noted beside it for its owner; and the rows held out.

The note has names of files and the share held out, nothing about rows, and it is no part of the
model. An evaluation goes by it to say whether it measures on rows that training has seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hedgerow.cli.files import write_text
from hedgerow.data.documents import Document, Within, named
from hedgerow.data.holdout import MOST_HELD_OUT, Part
from hedgerow.errors import PlanError, SettingsError

if TYPE_CHECKING:
    from hedgerow.cli.parties import Parties
    from hedgerow.privacy.accounting.plan import Plan
    from hedgerow.privacy.ledger.ledger import Ledger

FORMAT = 1
SUFFIX = ".tables.json"
_NOTE = Document("note of tables", format=FORMAT)
SENTENCES = {
    "training": "These are rows that the model was trained on, and it looks better on them than "
    "on new ones. `hedgerow train --holdout 0.2` keeps some of them back.",
    "mostly training": "All but the held-out part of these rows were trained on, and a model looks "
    "better on such rows than on new ones. --holdout measures on the held-out part alone.",
    "held out": "These rows were held out: the model was not trained on them.",
    "other": "None of these files was trained on, as far as their names tell.",
    "unknown": "Whether the model was trained on these rows is not known here.",
}


@dataclass(frozen=True)
class TrainedOn:
    """The files that a run read, and the share of their units that it left out."""

    tables: tuple[str, ...]
    holdout: Annotated[float, Within(low=0, high=MOST_HELD_OUT)] = 0.0
    format: int = FORMAT


def part_for_training(share: float | None) -> Part:
    """What --holdout of a training command means."""
    if share is None:
        return Part()
    if not 0 < share <= MOST_HELD_OUT:
        raise SettingsError(
            f"--holdout is {share:g}; hold out a share above 0 and at most {MOST_HELD_OUT:g}, such "
            "as 0.2"
        )
    return Part(share)


def held_out_part(model: Path) -> Part:
    """The rows that were held out when this model was trained."""
    note = read_note(model)
    if note is None or not note.holdout:
        why = f"no {model.name}{SUFFIX} beside it" if note is None else "all rows were trained on"
        raise SettingsError(
            f"which rows were held out of {model} is not known: {why}. Nothing was asked and "
            "nothing was spent. Leave out --holdout, or train with --holdout 0.2."
        )
    return Part(note.holdout, held_out=True)


def read_note(model: Path) -> TrainedOn | None:
    """The note beside a model, or beside a result of an evaluation; None if there is none."""
    path = model.with_name(model.name + SUFFIX)
    if not path.is_file():
        return None
    with named(str(path)):
        return _NOTE.read(TrainedOn, _NOTE.load(path, language="JSON"))


def write_note(out: Path, parties: Parties, plan: Plan, ledger: Ledger) -> None:
    """Note beside `out` what is read; a run that was started goes on with the rows it had."""
    if not parties.tables:
        return
    part, note = parties.part, read_note(out)
    earlier = 0.0 if note is None else note.holdout
    if earlier != part.share and ledger.lines(kind="reserve", run=plan.run):
        raise PlanError(
            f"run {plan.run} was started with a held-out share of {earlier:g}, and now it is "
            f"{part.share:g}: it would go on with other rows. Nothing was asked. Repeat the first "
            "command, or choose another --out for a new run."
        )
    values = {"format": FORMAT, "holdout": part.share, "tables": _absolute(parties.tables)}
    write_text(out.with_name(out.name + SUFFIX), json.dumps(values, indent=1) + "\n")


def check_part(part: Part, plan: Plan) -> None:
    """Where row counts are visible, a unit that changes sides would show in them."""
    if part.share and plan.privacy.trusted.local:
        raise SettingsError(
            "--holdout does not go with trust in nobody: there the number of rows is visible and a "
            "row is replaced by another, which may be on the other side. Put the rows to hold out "
            "into a file of their own, chosen without looking at them"
        )


def rows_are(model: Path, tables: Iterable[Path], part: Part) -> str:
    """What is known of the rows that are measured on: a key of SENTENCES."""
    if part.held_out:
        return "held out"
    note = read_note(model)
    if note is None:
        return "unknown"
    if not set(_absolute(tables)) & set(note.tables):
        return "other"
    return "mostly training" if note.holdout else "training"


def _absolute(tables: Iterable[Path]) -> list[str]:
    return sorted(str(path.resolve()) for path in tables)
