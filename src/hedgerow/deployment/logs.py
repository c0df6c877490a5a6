"""The log of a site's process: one JSON object a line, dated in UTC, rotated, kept over restarts.

It has what the process says of itself and what its libraries warn of; never a value or number of
rows, and a full disk does not end anything.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from hedgerow.engines.site import Site

MOST_BYTES = 4_000_000  # of one file
OLDER_FILES = 9
_TAIL = 400_000  # bytes that are read back for a page


class SiteLog(RotatingFileHandler):
    """Writes records of the logger `hedgerow`, and what is said to it, to one rotated file."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(
            file, maxBytes=MOST_BYTES, backupCount=OLDER_FILES, encoding="utf-8", delay=True
        )

    def _open(self) -> TextIOWrapper:
        """The file, made for its owner alone when the first line is written."""
        opened = super()._open()
        with suppress(OSError):
            Path(self.baseFilename).chmod(0o600)
        return opened

    @contextmanager
    def following(self, *further: str) -> Iterator[None]:
        """While the block lasts, warnings of this program, and of further loggers, go into it."""
        loggers = [logging.getLogger(name) for name in ("hedgerow", *further)]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)
            self.close()

    def say(self, text: str, about: str = "", **facts: Any) -> None:
        """One line of the process's own words; `about` lets a reader find its like."""
        record = logging.LogRecord("hedgerow", logging.INFO, "", 0, "%s", (text,), None)
        record.about, record.facts = about, facts
        self.handle(record)

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "time": time, "level": record.levelname.lower(), "from": record.name,
            "text": record.getMessage(),
        }  # fmt: skip
        entry |= getattr(record, "facts", {})
        if about := getattr(record, "about", ""):
            entry["about"] = about
        return json.dumps(entry, ensure_ascii=True)

    def handleError(self, record: logging.LogRecord) -> None:
        """A disk that is full keeps its lines; whoever logs goes on."""


def log_file(site: Site, name: str) -> Path:
    return site.folder / "logs" / f"{name}.log"


def recent(file: Path, about: str, most: int = 100) -> list[dict[str, Any]]:
    """The newest entries about something, the newest first, also of files that were rotated."""
    found: list[dict[str, Any]] = []
    for path in (file, *(file.with_name(f"{file.name}.{n}") for n in range(1, OLDER_FILES + 1))):
        for text in reversed(_tail(path)):
            with suppress(ValueError):
                entry = json.loads(text)
                if isinstance(entry, dict) and entry.get("about") == about:
                    found.append(entry)
            if len(found) >= most:
                return found
    return found


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return lines[1:] if size > _TAIL else lines
