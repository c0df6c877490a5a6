"""The folder that NVFlare runs in, `engine/` of a kit, made anew at every start.

NVFlare reads its settings, and from some of them loads code, from wherever it runs; and it writes,
unpacks and deletes there. So it gets a folder of its own: three certificate files of the kit, and
settings that this house's own hedgerow writes. Nothing else that came with a kit is ever read by
it, and what hedgerow keeps (rows, signing key, ledger) lies outside.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hedgerow.engines.nvflare.hardening import settings
from hedgerow.engines.site import Site
from hedgerow.errors import SettingsError

ROOM = "engine"
TEMPORARY = "tmp"
_CERTIFICATES = {
    "party": ("rootCA.pem", "client.crt", "client.key"),
    "coordinator": ("rootCA.pem", "server.crt", "server.key"),
}


def make_room(kit: Site) -> Path:
    """Make the folder; whatever an earlier process left there is dropped, jobs among it."""
    room = kit.path / ROOM
    if room.is_symlink():
        raise SettingsError(f"{room} is a link. Nothing was started. Remove it.")
    shutil.rmtree(room, ignore_errors=True)
    for folder in (room, room / "startup", room / "local", room / TEMPORARY):
        folder.mkdir(mode=0o700)
    for name in _CERTIFICATES[kit.role]:
        source = kit.path / "startup" / name
        if not source.is_file():
            raise SettingsError(
                f"{source} is missing, without which the sites cannot connect. Nothing was "
                "started. Unpack the site's archive again, or the newest renewal over it."
            )
        _write(room / "startup" / name, source.read_bytes())
    for name, values in settings(kit.role, kit.name, kit.federation, kit.address).items():
        _write(room / name, _json(values))
    return room


def kit_of_room(room: Path) -> Site:
    return Site.open(room.parent)


def _json(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode("utf-8")


def _write(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
