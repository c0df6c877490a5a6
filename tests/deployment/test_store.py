"""The folder of what a site keeps of sessions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.deployment.store import FolderStore
from hedgerow.errors import SettingsError


def test_a_folder_with_its_earlier_name_is_not_taken_for_an_empty_store(tmp_path: Path) -> None:
    site: Any = SimpleNamespace(folder=tmp_path)
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "part-1").write_bytes(b"kept")
    with pytest.raises(SettingsError, match=r"Rename .*shelf to .*store"):
        FolderStore.of(site)
    (tmp_path / "shelf").rename(tmp_path / "store")
    assert FolderStore.of(site).get("part-1") == b"kept"
