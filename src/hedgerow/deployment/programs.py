"""What a party can do together with others without an epsilon, by name; loaded when it is used."""

from __future__ import annotations

from importlib import import_module

from hedgerow.exchange import Agreement, Program, ProgramFactory
from hedgerow.schema import Schema
from hedgerow.tables import Rows

PROGRAMS = {"simfl": ("hedgerow.similarity.run", "similarity_program")}  # module, what makes it


def program_factories() -> dict[str, ProgramFactory]:
    """Of every known program: what makes a party's side of it."""
    return dict.fromkeys(PROGRAMS, _make)


def _make(me: str, rows: Rows, schema: Schema, agreement: Agreement) -> Program:
    module, name = PROGRAMS[agreement.program]
    made: Program = getattr(import_module(module), name)(me, rows, schema, agreement)
    return made
