"""The text of schema files (TOML)."""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema


def schema_text(schema: Schema) -> str:
    """A schema as TOML, with the notes of a draft on top."""
    import tomli_w

    notes = [line for note in schema.notes for line in textwrap.wrap(note, 96)]
    header = "".join(f"# {line}\n" for line in notes)
    return f"{header}\n" * bool(notes) + tomli_w.dumps(schema.to_dict())


def confirmed_text(text: str, by: str) -> str:
    """The text of a schema file with a line that says who confirmed it; all else stays."""
    line = f"confirmed_by = {json.dumps(by, ensure_ascii=False)}\n"
    return re.sub(r"(?m)^(drafted\s*=\s*true.*\n)", lambda mark: mark[1] + line, text, count=1)
