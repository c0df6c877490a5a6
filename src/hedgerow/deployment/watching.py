"""Files that a person changes while a process runs."""

from __future__ import annotations

from pathlib import Path


class Watched:
    """Notices that a file was written; looks at its time and size only."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp = self._look()

    def changed(self) -> bool:
        """Whether it was, since the last call."""
        before, self._stamp = self._stamp, self._look()
        return self._stamp != before

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
