"""Makes the kits of a new federation: certificates and addresses, and nothing that is run.

Whoever provisions holds every key that is made here, so these certificates protect the transport
and nothing else; the keys that privacy rests on are made by each house itself (`Site.identity`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from hedgerow import clock
from hedgerow.engines.nvflare import check_installed
from hedgerow.engines.nvflare.hardening import ADMIN
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.errors import HedgerowError, SettingsError
from hedgerow.protocol.identity import NAME, check_names

_HOST = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*")
_TAKEN = ("admin", "provision", "relay", "server", "server-parent")  # folders, or words of NVFlare
_ORGANISATION = "hedgerow"
_ROOT_DAYS = 3650  # certificates under it last 360 days; see `renew`
_README = """\
Site folder of {name} in the federation {federation}; keep it secret, it holds a private key.
Install hedgerow ({install}), unpack this archive where only you can read.
Then run: {command}
"""


def new_federation(
    folder: Path, name: str, host: str, port: int, parties: Sequence[str]
) -> dict[str, Path]:
    """Make a folder with one kit a house, one archive of each, and the provisioner's own keys.

    Parameters
    ----------
    folder : is made; `provision/` in it holds the root key and stays with whoever provisions
    host, port : where the parties reach the coordinator; parties only dial out

    Returns
    -------
    the kits by name, "coordinator" among them; the coordinator's has the administrator's inside
    """
    _check(name, host, port, parties)
    if folder.exists():
        raise SettingsError(f"{folder} exists already. Nothing was written. Choose another folder.")
    check_installed()
    folder.mkdir(mode=0o700, parents=True)
    try:
        return _make(
            folder.resolve(), Record(name, host, port, tuple(parties)), tuple(parties), True
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def add_party(folder: Path, party: str) -> Path:
    """One more kit under the root key of this folder; the other houses need nothing new."""
    record = Record.read(folder)
    _check(record.name, record.host, record.port, (*record.parties, party))
    check_installed()
    for path in (folder / party, folder / f"{party}.zip"):
        if path.exists():
            raise SettingsError(f"{path} exists already. Nothing was written.")
    grown = Record(record.name, record.host, record.port, (*record.parties, party))
    return _make(folder.resolve(), grown, (party,), False)[party]


def renew(folder: Path) -> dict[str, Path]:
    """New certificates for every house under the same root, as archives to unpack over the kits.

    Old and new ones work side by side until the old ones expire, so houses need not move at once.
    """
    record = Record.read(folder)
    check_installed()
    state = folder / "provision" / record.name / "state" / "cert.json"
    kept = json.loads(state.read_text("utf-8"))
    before = state.with_name("cert.before.json")
    shutil.copy2(state, before)
    _write_json(state, {key: kept[key] for key in ("root_cert", "root_pri_key")})
    try:
        made = _provision(folder / "provision", _project(record, record.parties))
    except BaseException:
        os.replace(before, state)
        raise
    archives = {}
    shutil.move(made / ADMIN, made / record.host / "admin")
    for house in (COORDINATOR, *record.parties):
        source = made / (record.host if house == COORDINATOR else house)
        _tidy(source)
        archives[house] = folder / f"{house}-renewal-{clock.utc_now():%Y-%m-%d}.zip"
        archives[house].unlink(missing_ok=True)
        startups = [source / "startup", source / "admin" / "startup"]
        files = [file for folder in startups for file in folder.glob("*") if _is_certificate(file)]
        _archive(source, archives[house], house, files)
    shutil.rmtree(made)
    for path in (folder / "provision").rglob("*"):
        _only_owner(path)
    return archives


@dataclass(frozen=True)
class Record:
    """What the provisioner remembers of a federation, beside its keys."""

    name: str
    host: str
    port: int
    parties: tuple[str, ...]

    @staticmethod
    def read(folder: Path) -> Record:
        file = folder / "provision" / "federation.json"
        try:
            values = json.loads(file.read_text("utf-8"))
            parties = tuple(str(party) for party in values["parties"])
            return Record(str(values["name"]), str(values["host"]), int(values["port"]), parties)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{folder} is not the folder of `hedgerow federation new`: provision/federation."
                "json is missing or not readable. Nothing was written."
            ) from error

    def write(self, folder: Path) -> None:
        _write_json(folder / "provision" / "federation.json", asdict(self))


def _check(name: str, host: str, port: int, parties: Sequence[str]) -> None:
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} is not a name for a federation; use 1 to 40 of a-z, 0-9 and "
            "hyphens, no hyphen first"
        )
    if not _HOST.fullmatch(host):
        raise SettingsError(
            f"{host!r} is not a host; give the name or IPv4 address by which parties reach the "
            "coordinator, at most 63 characters"
        )
    if isinstance(port, bool) or not 1 <= port <= 65535:
        raise SettingsError(f"{port!r} is not a port; use a number from 1 to 65535")
    if not parties:
        raise SettingsError("a federation needs parties; name at least one")
    check_names(parties)
    taken = [p for p in parties if p in (*_TAKEN, host)]
    if taken:
        raise SettingsError(f"a party cannot be called {taken[0]!r}; choose another name")


def _make(folder: Path, record: Record, parties: tuple[str, ...], whole: bool) -> dict[str, Path]:
    """Kits of these parties, and of the coordinator if the whole federation is new."""
    made = _provision(folder / "provision", _project(record, parties))
    record.write(folder)
    sources = {COORDINATOR: made / record.host} if whole else {}
    sources |= {party: made / party for party in parties}
    if whole:
        shutil.move(made / ADMIN, made / record.host / "admin")
    kits = {house: folder / house for house in sources}
    for house, kit in kits.items():
        shutil.move(sources[house], kit)
        _tidy(kit)
        _strip(kit)
        Site.create(kit, record.name, house, f"{record.host}:{record.port}")
        _write_readme(kit, record.name, house)
    shutil.rmtree(made)
    for path in (folder, *folder.rglob("*")):
        _only_owner(path)
    for house, kit in kits.items():
        _archive(kit, folder / f"{house}.zip", house, [kit, *sorted(kit.rglob("*"))])
    return kits


def _project(record: Record, parties: Sequence[str]) -> dict[str, Any]:
    coordinator: dict[str, Any] = {
        "name": record.host,
        "type": "server",
        "fed_learn_port": record.port,
    }
    admin = {"name": ADMIN, "type": "admin", "role": "project_admin"}
    clients = [{"name": p, "type": "client"} for p in parties]
    people = [{**p, "org": _ORGANISATION} for p in (coordinator, *clients, admin)]
    parts = "nvflare.lighter.impl"
    builders = [
        {
            "path": f"{parts}.workspace.WorkspaceBuilder",
            "args": {"template_file": ["master_template.yml"]},
        },
        {
            "path": f"{parts}.static_file.StaticFileBuilder",
            "args": {"config_folder": "config", "scheme": "tcp"},
        },
        {"path": f"{parts}.cert.CertBuilder", "args": {"root_valid_days": _ROOT_DAYS}},
        {"path": f"{parts}.signature.SignatureBuilder", "args": {}},
    ]
    return {"api_version": 3, "name": record.name, "participants": people, "builders": builders}


def _provision(folder: Path, project: dict[str, Any]) -> Path:
    """Let NVFlare make certificates and start files; what it prints is kept for the error."""
    from nvflare.lighter.prov_utils import prepare_builders
    from nvflare.lighter.provision import prepare_project
    from nvflare.lighter.provisioner import Provisioner

    before = os.umask(0o077)  # its own file of private keys is born readable by all otherwise
    spoken = StringIO()
    try:
        with redirect_stdout(spoken), redirect_stderr(spoken):
            provisioner = Provisioner(str(folder), prepare_builders(project))
            found = provisioner.provision(prepare_project(project))
    finally:
        os.umask(before)
    made = found.get("current_prod_dir")
    if found.get("build_error") or not made:
        raise HedgerowError(
            f"NVFlare could not make the site folders. It said: {spoken.getvalue()}"
        )
    return Path(made)


def _tidy(kit: Path) -> None:
    """Drop what people could start by hand: hedgerow starts and stops NVFlare."""
    for pattern in ("*.sh", "*.ipynb", "readme.txt"):
        for file in [*kit.rglob(pattern)]:
            file.unlink()


def _strip(kit: Path) -> None:
    """Leave the certificates only: each house writes NVFlare's settings itself, see `room.py`."""
    shutil.rmtree(kit / "local")
    for file in (kit / "startup").iterdir():
        if not _is_certificate(file):
            file.unlink()


def _is_certificate(file: Path) -> bool:
    return file.suffix in (".pem", ".crt", ".key")


def _write_json(file: Path, values: dict[str, Any]) -> None:
    file.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def _write_readme(kit: Path, federation: str, house: str) -> None:
    text = _README.format(
        name=house,
        federation=federation,
        install="pip install 'hedgerow[nvflare]'",
        command=(
            f"hedgerow coordinator start {house}"
            if house == COORDINATOR
            else f"hedgerow party start {house} --data rows.parquet --schema schema.toml"
        ),
    )
    (kit / "README.txt").write_text(text, "utf-8")


def _only_owner(path: Path) -> None:
    path.chmod(0o700 if path.is_dir() else 0o600)


def _archive(kit: Path, file: Path, house: str, members: Iterable[Path]) -> None:
    """Pack paths of a kit as one folder; modes are kept by programs that keep them."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.compression = zipfile.ZIP_DEFLATED
        for path in members:
            archive.write(path, Path(house) / path.relative_to(kit))
