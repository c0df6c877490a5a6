"""Who takes part in `hedgerow vertical`: tables here or other sites, and who holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.parties import OtherSites, TablesHere
from hedgerow.cli.sessions import further_settings, parties_for
from hedgerow.data.documents import Document
from hedgerow.errors import HedgerowError, SettingsError

if TYPE_CHECKING:
    from hedgerow.data.schema import Schema
    from hedgerow.methods.fedxgboost.settings import VerticalSettings

FILE = "model.json"  # in the folder of a model: what all parties know of it
_KNOWN = Document("vertical model", open=True)


@dataclass(frozen=True)
class _Known:
    """What is read of it."""

    run: str
    settings: Mapping[str, Any]


class SharesHere(TablesHere):
    """Parties of this process whose tables have different columns."""

    id_column: str | None = None

    def check(self, schema: Schema) -> None:
        from hedgerow.data.tables import share_of

        self._tables = {
            name: share_of(path, schema, self.id_column, source=str(path))
            for name, path in self._sources.items()
        }

    def columns(self, schema: Schema) -> dict[str, tuple[str, ...]]:
        """Which of the schema's columns each table has."""
        return {
            name: tuple(schema.names[j] for j in rows.columns or ())
            for name, rows in self._tables.items()
        }

    @property
    def least_rows(self) -> int:
        """Rows of the smallest table: there are no more common ones."""
        return min(rows.n_rows for rows in self._tables.values())

    def with_labels(self) -> tuple[str, ...]:
        return tuple(name for name, rows in self._tables.items() if len(rows.target))


def vertical_parties(
    engine: str, data: list[str] | None, site: Path | None, seconds: float, id_column: str | None,
    folder: Path | None,
) -> TablesHere | OtherSites:  # fmt: skip
    """The parties of a command; `folder` is where those of this machine keep their parts."""
    parties = parties_for("vertical", SharesHere, engine, data, site, seconds)
    if isinstance(parties, SharesHere):
        if folder is None:
            raise SettingsError("--out is missing: a folder for the parties' parts of the model")
        parties.id_column, parties.folder = id_column, folder
    elif id_column is not None:
        raise SettingsError(
            "--id belongs to `hedgerow party start` where parties are at other sites"
        )
    return parties


def ids_of(engine: str, id_column: str | None, agreed: bool) -> str:
    """How rows are brought into one order; never by chance."""
    if agreed:
        return "agreed"
    if engine == "local" and id_column is None:
        raise SettingsError(
            "how do rows of the tables belong together? Name the column that says so with --id, or "
            "say --agreed-ids if all tables have the same rows in the same order"
        )
    return "psi"


def settings_of(
    schema: Schema, parties: TablesHere | OtherSites, active: str | None, owner: list[str],
    further: list[str], own: dict[str, Any],
) -> VerticalSettings:  # fmt: skip
    """Settings from options, and from what the tables have where they are here."""
    from hedgerow.methods.fedxgboost.settings import VerticalSettings

    owners = _given_owners(owner, parties.names)
    if isinstance(parties, SharesHere):
        owners = {**_found_owners(schema, parties, owners), **owners}
        active = active or _found_active(parties, schema)
    if active is None or active not in parties.names:
        raise SettingsError(f"--active is {active!r}; it must be one of {', '.join(parties.names)}")
    values = further_settings(further, {**own, "owners": owners, "active": active})
    settings = VerticalSettings.from_dict(values)
    if own.get("epsilon") is not None and settings.protection != "ldp":
        raise SettingsError(
            f"--epsilon belongs to --protection ldp; the protection is {settings.protection}, "
            "which has no epsilon. Leave it out, or choose ldp"
        )
    if idle := sorted(set(parties.names) - set(settings.parties)):
        raise SettingsError(
            f"{idle[0]} holds no column of the schema; leave it out. Nothing was sent."
        )
    return settings


def _given_owners(owner: list[str], names: tuple[str, ...]) -> dict[str, str]:
    owners: dict[str, str] = {}
    for text in owner:
        name, equals, columns = text.partition("=")
        if not equals or name not in names:
            raise SettingsError(
                f"--owner {text!r} is not PARTY=COL,COL with one of the parties {', '.join(names)}"
            )
        owners |= dict.fromkeys((c.strip() for c in columns.split(",")), name)
    return owners


def _found_owners(schema: Schema, parties: SharesHere, given: Mapping[str, str]) -> dict[str, str]:
    owners: dict[str, str] = {}
    for name, columns in parties.columns(schema).items():
        for column in columns:
            if column in owners and column not in given:
                raise SettingsError(
                    f"column {column!r} is in the tables of {owners[column]} and {name}. Nothing "
                    f"was sent. Say whose is used with --owner {name}={column}."
                )
            owners.setdefault(column, name)
    return owners


def _found_active(parties: SharesHere, schema: Schema) -> str:
    having, label = parties.with_labels(), schema.label.name
    if not having:
        raise SettingsError(
            f"no table has the label column {label!r}, so there is no active party. Nothing was "
            "sent. Give the table of the party that holds the labels too."
        )
    if len(having) > 1:
        raise SettingsError(
            f"{' and '.join(having)} have the label column {label!r}. Nothing was sent. Say whose "
            f"labels count with --active {having[0]}."
        )
    return having[0]


def known_model(
    model: str, parties: TablesHere | OtherSites, schema: Path | None
) -> tuple[str, VerticalSettings, Schema]:
    """The run that made a model, its settings and schema."""
    from hedgerow.data.schema import Schema
    from hedgerow.errors import FormatError
    from hedgerow.methods.fedxgboost.model import Part, part_name
    from hedgerow.methods.fedxgboost.settings import VerticalSettings
    from hedgerow.privacy.ledger.ledger import Ledger
    from hedgerow.privacy.ledger.store import COORDINATOR
    from hedgerow.protocol.identity import check_names

    if isinstance(parties, SharesHere):
        file = Path(model) / FILE
        try:
            known = _KNOWN.read(_Known, _KNOWN.load(file, language="JSON"))
            run, settings = known.run, VerticalSettings.from_dict(known.settings)
            check_names(settings.parties)  # they name folders
            part = Part.from_bytes((Path(model) / settings.active / part_name(run)).read_bytes())
        except (OSError, HedgerowError) as error:
            raise FormatError(
                f"{model} is no folder of a vertical model; give the --out of `hedgerow vertical "
                f"train`. {error}"
            ) from error
        return run, settings, part.schema
    if schema is None:
        raise SettingsError("--schema is missing: the schema that the model was trained with")
    public = Schema.read(schema)
    assert parties.site_ledger is not None
    with Ledger.open(parties.site_ledger) as ledger:
        lines = ledger.lines(COORDINATOR, "disclose", model)
    if not lines or not str(lines[0].values["agreement"]["program"]).startswith("fedxgboost-"):
        raise SettingsError(
            f"this site has trained no vertical model in a run {model!r}. Nothing was sent. "
            "`hedgerow vertical train` prints the run."
        )
    agreed = lines[0].values["agreement"]
    if agreed["schema"] != public.hash:
        raise SettingsError(f"{schema} is not the schema that run {model} was trained with")
    return model, VerticalSettings.from_dict(agreed["settings"]), public
