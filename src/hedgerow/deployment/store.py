"""What a site keeps of sessions with others: its parts of models, and predictions."""

from __future__ import annotations

import re
from pathlib import Path

from hedgerow.deployment.approvals import write_private
from hedgerow.engines.site import Site
from hedgerow.errors import FormatError, SettingsError

_NAME = re.compile(r"[a-z0-9-]{1,80}")


class FolderStore:
    """Files in a folder that only their owner may read, written by rename."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, site: Site) -> FolderStore:
        folder, earlier = site.folder / "store", site.folder / "shelf"
        if earlier.is_dir() and not folder.exists():  # else parts of models would seem lost
            raise SettingsError(
                f"what this site keeps lies in {earlier}, and the folder is called store now. "
                f"Nothing was asked. Rename {earlier} to {folder}, then start again."
            )
        return cls(folder)

    def put(self, name: str, data: bytes) -> None:
        write_private(self._file(name), data)

    def get(self, name: str) -> bytes | None:
        file = self._file(name)
        return file.read_bytes() if file.is_file() else None

    def _file(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise FormatError(f"{name!r} is no name of something kept; a-z, 0-9 and hyphens are")
        return self._folder / name
