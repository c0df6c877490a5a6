"""`hedgerow schema draft|confirm`: a schema proposed from a PUBLIC sample, and who stands by it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli import options
from hedgerow.cli.schema import SchemaArgument
from hedgerow.cli.screen import tell
from hedgerow.errors import HedgerowError, SchemaError


def draft(
    *,
    data: Annotated[Path, typer.Option("--data", help="A PUBLIC or SYNTHETIC sample table.")],
    label: Annotated[str, typer.Option("--label", help="The column to predict.")],
    csv: options.CsvOptions,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the schema here; by default to stdout.")
    ] = None,
) -> None:
    """Propose a schema from a sample. READS THE ROWS: for public or synthetic samples only.

    The schema is marked as drafted; `hedgerow schema confirm` records who replaced or accepted it.
    """
    from hedgerow.cli.files import write_text
    from hedgerow.data.schema import Schema
    from hedgerow.data.schema_toml import schema_text

    if out is not None and out.exists():
        raise HedgerowError(f"{out} exists and is not overwritten; choose another --out.")
    proposed = Schema.draft(data, label, **vars(csv))
    for note in proposed.notes:
        tell(note, style="bold yellow")
    if out is None:
        typer.echo(schema_text(proposed), nl=False)
    else:
        write_text(out, schema_text(proposed))
        tell(f"Draft of {len(proposed.columns)} columns written to {out}.")


def confirm(
    schema: SchemaArgument,
    by: Annotated[str, typer.Option("--by", help="Who replaced or accepted what was drafted.")],
) -> None:
    """Record that a person replaced a draft's bounds and lists by public facts, or accepts them.

    The mark stays: statements and reports say that it was drafted and who confirmed it.
    """
    from hedgerow.cli.files import write_text
    from hedgerow.data.schema import Schema
    from hedgerow.data.schema_checks import SCHEMA
    from hedgerow.data.schema_toml import confirmed_text

    public = Schema.read(schema)
    if not public.drafted:
        raise SchemaError(f"{schema} is no draft (drafted = true), so there is nothing to confirm")
    if public.confirmed_by:
        raise SchemaError(
            f"{schema} is confirmed by {public.confirmed_by} already; for another name change "
            "confirmed_by in the file"
        )
    confirmed = public.confirm(by)
    text = confirmed_text(schema.read_text(encoding="utf-8"), confirmed.confirmed_by)
    if Schema.from_dict(SCHEMA.parse(text, str(schema), "TOML"), str(schema)) != confirmed:
        raise SchemaError(f"{schema} has no line drafted = true at its top; write it on one")
    write_text(schema, text)
    tell(f"{schema}: {confirmed.origin}. Its hash is {confirmed.hash[:16]} now; make plans anew.")
