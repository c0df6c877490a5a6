"""What a party is started with, remembered at its site: table, schema, and where its limits are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import tomli_w

from hedgerow.data.checking import TableCheck, check_table
from hedgerow.data.documents import Document
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows, rows_of, share_of
from hedgerow.deployment.approvals import write_private
from hedgerow.deployment.limits_file import InForce, default_limits_text, in_force, read_text
from hedgerow.engines.site import Site
from hedgerow.errors import FormatError, SettingsError
from hedgerow.privacy.ledger.ledger import Ledger

SOURCES = ("default", "kit", "named")  # of limits; one further left does not replace the others
FILE = "start.toml"
_SPENT = "Nothing was asked and nothing was spent."
_START = Document("start", format=1)


@dataclass(frozen=True)
class _File:
    """What start.toml holds; "" stands for a path that was not given."""

    data: str
    schema: str
    limits: str
    source: Literal["default", "kit", "named"]
    limits_hash: str
    id: str = ""
    some: bool = False


@dataclass(frozen=True)
class Start:
    """Where a party's table, schema and limits are."""

    data: Path | None = None
    schema: Path | None = None
    limits: Path | None = None
    id_column: str = ""  # of a table that has some of the schema's columns
    some_columns: bool = False
    source: str = "default"  # of the limits that were in force
    limits_hash: str = ""

    @classmethod
    def remembered(cls, site: Site) -> Start:
        file = site.folder / FILE
        if not file.exists():
            return cls()
        try:
            told = _START.read(_File, _START.load(file))
        except FormatError as error:
            raise FormatError(
                f"{error}. Remove the file and give --data, --schema and, if you used a limits "
                f"file, --limits. {_SPENT}"
            ) from error
        data, schema, limits = (
            Path(text) if text else None for text in (told.data, told.schema, told.limits)
        )
        return cls(data, schema, limits, told.id, told.some, told.source, told.limits_hash)

    def updated(
        self,
        data: Path | None,
        schema: Path | None,
        limits: Path | None,
        id_column: str | None = None,
        some_columns: bool = False,
    ) -> Start:
        """With what was given now instead, as absolute paths; another table is read anew."""
        given = {"data": data, "schema": schema, "limits": limits}
        changes: dict[str, object] = {key: path.resolve() for key, path in given.items() if path}
        if data or id_column or some_columns:
            changes["id_column"] = id_column or ""
            changes["some_columns"] = bool(some_columns or id_column)
        return replace(self, **changes)  # type: ignore[arg-type]

    def remember(self, site: Site, used: InForce) -> None:
        paths = {key: str(getattr(self, key) or "") for key in ("data", "schema", "limits")}
        own = {"id": self.id_column, "some": self.some_columns}
        values = {"format": 1, **paths, **own, "source": used.source, "limits_hash": used.hash}
        write_private(site.folder / FILE, tomli_w.dumps(values))

    def limits_file(self, site: Site) -> Path | None:
        """The limits file that was named, else the site's own; None if there is neither."""
        own = site.folder / "limits.toml"
        return self.limits or (own if own.exists() else None)

    def in_force(self, site: Site) -> InForce:
        """What the party allows: by its file, or the default limits if it never had one."""
        file = self.limits_file(site)
        if file is None:
            text, place, source = default_limits_text(), "the default limits", "default"
        else:
            text, place = read_text(file), str(file)
            source = "named" if self.limits else "kit"
        found = in_force(text, site.name, place, source)
        check_fallback(site, self.source, self.limits_hash, found)
        return found

    def read_table(self) -> tuple[Schema, Rows]:
        """Schema and rows; everything else waits until they fit each other."""
        if self.data is None or self.schema is None:
            missing = "--data" if self.data is None else "--schema"
            raise SettingsError(
                f"{missing} is not known yet: give it once, and `hedgerow party start` remembers "
                f"it in the site folder. {_SPENT}"
            )
        schema = Schema.read(self.schema)
        if self.some_columns:
            return schema, _whole(share_of(self.data, schema, self.id_column or None), schema)
        return schema, rows_of(self.data, schema)

    def check_table(self, schema: Schema) -> TableCheck:
        """What the schema does to the rows; exact counts, for the operator's eyes alone."""
        return check_table(schema, self.data, source=str(self.data), some=self.some_columns)


def _whole(share: Rows, schema: Schema) -> Rows:
    """A table with ids that has every column and the label can answer sums as well.

    Persons and weights stand in columns that a share does not have: there it stays a share.
    """
    every = share.columns == tuple(range(len(schema.columns))) and len(share.target) > 0
    plain = schema.unit.kind == "row" and schema.weight is None
    return replace(share, columns=None) if every and plain else share


def check_fallback(site: Site, source: str, text_hash: str, now: InForce) -> None:
    """Limits that were used do not make way for weaker ones because a file is missing."""
    if SOURCES.index(now.source) >= SOURCES.index(source) or now.hash == text_hash:
        return
    instead = "the default limits" if now.source == "default" else "the site's own limits.toml"
    if source == "named":
        missing = f"with a limits file (--limits), and {site.folder / FILE} does not name it now"
        advice = "Name it again with --limits FILE."
    else:
        missing = f"with the limits file {site.folder / 'limits.toml'}, and it is missing"
        advice = (
            "Put the file back, name another with --limits FILE, or decide for the default limits "
            f"with `hedgerow party limits {site.path} --write`."
        )
    raise SettingsError(
        f"this party was started before {missing}; {instead} would hold instead. {_SPENT} {advice}"
    )


def check_limits(site: Site, ledger: Ledger, now: InForce) -> None:
    """The same by what the ledger remembers."""
    for line in ledger.lines(site.name, "limits")[-1:]:
        check_fallback(site, str(line.values["source"]), str(line.values["hash"]), now)


def record_limits(site: Site, ledger: Ledger, now: InForce) -> bool:
    """A line with the hash of the limits if they are not those of the last; whether they changed.

    The first limits of a ledger are recorded too, and are no change.
    """
    values = {"hash": now.hash, "source": now.source}
    last = [line.values for line in ledger.lines(site.name, "limits")[-1:]]
    if last == [values]:
        return False
    ledger.append(site.name, "limits", values=values)
    return bool(last) and last[0]["hash"] != now.hash
