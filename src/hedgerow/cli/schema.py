"""`hedgerow schema check|show`: the public description of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli import options
from hedgerow.cli.screen import print_json, results, table
from hedgerow.cli.screen import show as say

if TYPE_CHECKING:
    from hedgerow.data.checking import TableCheck
    from hedgerow.data.schema import Schema

SchemaArgument = Annotated[Path, typer.Argument(metavar="SCHEMA", help="Schema file (TOML).")]


def check(
    schema: SchemaArgument,
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", help="Count what it does to this table; repeatable."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check a schema, and what it does to tables: values clipped, unlisted, missing, constant.

    The counts are exact, so they are for the eyes of the table's owner alone, before a fit. Sends
    nothing and spends nothing.
    """
    from hedgerow.data.schema import Schema
    from hedgerow.data.tables import rows_of

    public = Schema.read(schema)
    checked: list[TableCheck] = []
    fitting: list[dict[str, Any]] = []
    if data:
        from hedgerow.data.checking import check_table

        checked = [check_table(public, path, source=str(path)) for path in data]
        fitting = [{"path": table.source, **table.to_dict()} for table in checked]
    facts = {
        "schema": str(schema),
        "name": public.name,
        "hash": public.hash,
        "columns": len(public.columns),
        "task": public.label.task,
        "tables": fitting,
    }
    if json:
        print_json(facts)
    else:
        _say_checked(schema, public, checked)
    for path in data or ():
        rows_of(path, public)  # raises if the table could not be used


def _say_checked(schema: Path, public: Schema, checked: list[TableCheck]) -> None:
    say(
        f"{schema} is a complete schema: {len(public.columns)} columns, {public.label.task} label "
        f"{public.label.name!r}, hash {public.hash[:16]}."
    )
    if public.drafted:
        say(f"Note: {public.origin}.", style="yellow")
    for result in checked:
        say(result.words())


def show(schema: SchemaArgument, json: options.Json = False) -> None:
    """Show columns, bounds, categories, label and unit of privacy."""
    from hedgerow.data.schema import Schema
    from hedgerow.data.schema_words import values_in_words
    from hedgerow.data.values import text_of

    public = Schema.read(schema)
    if json:
        print_json({**public.to_dict(), "hash": public.hash})
        return
    shown = table(f"Schema {public.name!r}", "column", "kind", "values", "missing")
    for column in public.columns:
        allowed = "allowed" if column.missing else "no"
        shown.add_row(column.name, column.kind, values_in_words(column), allowed)
    results().print(shown)
    label, unit = public.label, public.unit
    # A label's own words list a few classes; here all of them stand.
    classes = ", ".join(text_of(value) for value in label.classes)
    say(f"Label {label.name!r}: {classes or label.values}.")
    row = "one row" if unit.kind == "row" else f"one person ({unit.column!r})"
    if public.weight is not None:
        say(
            f"Weight {public.weight.column!r}: 0 to {public.max_weight:g}, clamped. All noise is "
            f"{public.max_weight:g} times as wide."
        )
    say(f"Unit of privacy: {row}. Hash: {public.hash}")
    if public.drafted:
        say(f"Note: {public.origin}.", style="yellow")
