"""The format of a ledger file: newer ones are refused, older ones brought up to date by a copy."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hedgerow.errors import FormatError, LedgerError
from hedgerow.privacy.ledger.disk import Connection, create_private

FORMAT = 1
# Forward-only: MIGRATIONS[n] turns a file of format n into n + 1, after a copy was made.
MIGRATIONS: dict[int, str] = {}


def check_format(connection: Connection, path: Path) -> None:
    """Bring an older file to this format; FormatError names the version that reads a newer one."""
    try:
        (version,) = connection.execute("SELECT format FROM meta").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise LedgerError(f"{path} is not a hedgerow ledger") from error
    if version > FORMAT:
        raise FormatError(
            f"ledger format {version} is newer than this hedgerow reads ({FORMAT}); "
            f"install the hedgerow version that writes ledger format {version}"
        )
    if version < FORMAT:
        _migrate(connection, path, version)


def _migrate(connection: Connection, path: Path, version: int) -> None:
    """The old file is kept beside the new one."""
    kept = Path(f"{path}.format-{version}")
    create_private(kept)
    assert isinstance(connection, sqlite3.Connection)
    with sqlite3.connect(kept) as copy:
        connection.backup(copy)
    copy.close()
    for step in range(version, FORMAT):
        script = f"BEGIN; {MIGRATIONS[step]}; UPDATE meta SET format = {step + 1}; COMMIT;"
        connection.executescript(script)
