"""What the commands print: results on stdout, everything else on stderr; and logging in UTC."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

logger = logging.getLogger("hedgerow")


def clean(text: str) -> str:
    """A text that may come from somebody else, as it may stand on a terminal.

    >>> clean("a" + chr(27) + "[2J")
    'a?[2J'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


class _Plain(Table):
    """Cells are texts and nothing else: no markup, no links, no control characters."""

    def add_column(self, header: Any = "", *further: Any, **named: Any) -> None:
        super().add_column(_plain(header), *further, **named)

    def add_row(self, *cells: Any, **named: Any) -> None:
        super().add_row(*map(_plain, cells), **named)


def _plain(cell: Any) -> Any:
    return Text(clean(cell)) if isinstance(cell, str) else cell


def results() -> Console:
    """The console for results (stdout); made when needed, so that it follows redirection."""
    return Console(highlight=False)


def messages() -> Console:
    """The console for progress and messages (stderr)."""
    return Console(stderr=True, highlight=False)


def show(text: str, style: str | None = None) -> None:
    """Sentences on stdout: wrapped for a terminal, one line each for a file or a pipe."""
    _sentences(results(), text, style)


def tell(text: str, style: str | None = None) -> None:
    """Sentences on stderr."""
    _sentences(messages(), text, style)


def _sentences(console: Console, text: str, style: str | None) -> None:
    text = clean(text)
    console.print(text, style=style, markup=False, emoji=False, soft_wrap=not console.is_terminal)


def print_json(values: Any) -> None:
    """Machine-readable results: the only thing a command with --json writes to stdout."""
    sys.stdout.write(json.dumps(values, indent=2, ensure_ascii=True, allow_nan=False) + "\n")


def table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """A plain table; the columns named in `right` hold numbers."""
    title = clean(title)
    shown = _Plain(
        title=Text(title, style="bold"),
        title_justify="left",
        header_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        min_width=len(title),
    )
    for name in columns:
        shown.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return shown


def decimals(largest: float) -> int:
    """How many decimals numbers of a size deserve: four digits or so that say something.

    >>> decimals(0.8463), decimals(43.78), decimals(-2232.4)
    (4, 2, 0)
    """
    return 4 if abs(largest) < 10 else 2 if abs(largest) < 1000 else 0


def size_text(n_bytes: float) -> str:
    """A number of bytes for people.

    >>> size_text(980), size_text(123_400), size_text(5_600_000)
    ('980 B', '123 kB', '5.6 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    if n_bytes < 1e6:
        return f"{n_bytes / 1e3:.0f} kB"
    return f"{n_bytes / 1e6:.1f} MB"


class _UtcFormatter(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Stderr(logging.Handler):
    """Writes to the standard error of the moment, also while a progress bar is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # a log on a full disk does not end a run
            sys.stderr.write(clean(self.format(record)) + "\n")
            sys.stderr.flush()


def start_logging(verbose: bool) -> None:
    """Warnings go to stderr; with --verbose also every step. Never a value of a row."""
    if not any(isinstance(handler, _Stderr) for handler in logger.handlers):
        handler = _Stderr()
        handler.setFormatter(_UtcFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    logger.setLevel(logging.DEBUG if verbose else logging.WARNING)
