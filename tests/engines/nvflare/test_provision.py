"""Site folders: what is in them, who may read them, and what they let NVFlare do."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from hedgerow.engines.nvflare.provision import add_party, new_federation, renew
from hedgerow.engines.nvflare.room import make_room
from hedgerow.engines.site import Site
from hedgerow.errors import SettingsError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made") / "trial"
    return new_federation(folder, "trial", "example.org", 8002, ["a-site", "b-site"])


def read(file: Path) -> dict[str, Any]:
    found = json.loads(file.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def test_there_is_a_site_and_an_archive_for_each_site(made: dict[str, Path]) -> None:
    assert list(made) == ["coordinator", "a-site", "b-site"]
    for name, path in made.items():
        site = Site.open(path)
        assert (site.name, site.federation, site.address) == (name, "trial", "example.org:8002")
        with zipfile.ZipFile(path.with_suffix(".zip")) as archive:
            inside = archive.namelist()
            readme = archive.read(f"{name}/README.txt").decode("utf-8")
        assert {Path(member).parts[0] for member in inside} == {name}
        assert f"{name}/local/hedgerow/kit.toml" in inside
        assert len(readme.splitlines()) == 3
        assert f"start {name}" in readme


def test_nobody_else_can_read_anything(made: dict[str, Path]) -> None:
    folder = made["coordinator"].parent
    assert (folder / "provision" / "trial" / "state" / "cert.json").is_file()
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_the_root_key_stays_with_whoever_provisions(made: dict[str, Path]) -> None:
    folder = made["coordinator"].parent
    assert read(folder / "provision" / "federation.json")["parties"] == ["a-site", "b-site"]
    state = read(folder / "provision" / "trial" / "state" / "cert.json")
    secret = "".join(state["root_pri_key"].split()).encode()
    for path in made.values():
        for file in path.rglob("*"):
            assert not file.is_file() or secret not in b"".join(file.read_bytes().split())
    party = b"".join(f.read_bytes() for f in made["a-site"].rglob("*") if f.is_file())
    assert (made["b-site"] / "startup" / "client.key").read_bytes() not in party
    assert not (made["a-site"] / "admin").exists()


def test_no_role_may_bring_code_or_use_a_shell(made: dict[str, Path]) -> None:
    for path in made.values():
        permissions = read(make_room(Site.open(path)) / "local" / "authorization.json")[
            "permissions"
        ]
        assert set(permissions) == {"project_admin", "org_admin", "lead", "member"}
        for rights in permissions.values():
            assert rights["byoc"] == rights["shell_commands"] == "none"


def test_only_our_carriers_may_run(made: dict[str, Path]) -> None:
    ours = "hedgerow.engines.nvflare"
    for name, path in made.items():
        values = read(make_room(Site.open(path)) / "local" / "resources.json")
        end = "CoordinatorCarrier" if name == "coordinator" else "PartyCarrier"
        assert values["class_allow_list"] == [f"{ours}.carriers.{end}"]
        assert values["class_list_enforcement_mode"] == "enforce"
        assert values["allow_log_streaming"] is False
        paths = {part["id"]: part["path"] for part in values["components"]}
        assert paths["process_launcher"].startswith(f"{ours}.launcher.")
        assert not any("log" in name for name in paths)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "Trial"}, "not a name for a federation"),
        ({"name": "../trial"}, "not a name for a federation"),
        ({"host": "no host"}, "not a host"),
        ({"host": ""}, "not a host"),
        ({"port": 0}, "not a port"),
        ({"port": 70000}, "not a port"),
        ({"parties": []}, "needs parties"),
        ({"parties": ["a", "a"]}, "unique"),
        ({"parties": ["coordinator"]}, "not a party name"),
        ({"parties": ["server"]}, "cannot be called"),
        ({"parties": ["provision"]}, "cannot be called"),
        ({"parties": ["-a"]}, "not a party name"),
        ({"parties": ["a/b"]}, "not a party name"),
    ],
)
def test_nonsense_is_refused_before_anything_is_written(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    asked = {"name": "trial", "host": "localhost", "port": 8002, "parties": ["a"], **change}
    with pytest.raises(SettingsError, match=said):
        new_federation(folder, **asked)
    assert not folder.exists()


def test_an_existing_folder_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("all of it")
    with pytest.raises(SettingsError, match="exists already"):
        new_federation(folder, "trial", "localhost", 8002, ["a"])
    assert [p.name for p in folder.iterdir()] == ["thesis.txt"]


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    new_federation(folder, "trial", "localhost", 8002, ["a"])
    assert capfd.readouterr() == ("", "")


def test_a_party_is_added_under_the_same_root(folder: Path) -> None:
    made = new_federation(folder, "trial", "localhost", 8002, ["a"])
    before = {p: p.read_bytes() for p in made["coordinator"].rglob("*") if p.is_file()}
    added = add_party(folder, "b")
    assert Site.open(added).address == "localhost:8002"
    assert is_signed_by(added / "startup" / "client.crt", made["a"] / "startup" / "rootCA.pem")
    assert sorted(path.name for path in (added / "local").iterdir()) == ["hedgerow"]
    assert (folder / "b.zip").stat().st_mode & 0o777 == 0o600
    assert before == {p: p.read_bytes() for p in made["coordinator"].rglob("*") if p.is_file()}
    with pytest.raises(SettingsError, match="unique"):
        add_party(folder, "b")
    with pytest.raises(SettingsError, match="not the folder"):
        add_party(folder / "a", "c")


def test_renewed_certificates_are_signed_by_the_same_root(folder: Path, tmp_path: Path) -> None:
    made = new_federation(folder, "trial", "localhost", 8002, ["a"])
    archives = renew(folder)
    assert list(archives) == ["coordinator", "a"]
    for site, file in archives.items():
        with zipfile.ZipFile(file) as archive:
            assert all("/startup/" in name for name in archive.namelist())
            archive.extractall(tmp_path / "new")
        name = "server.crt" if site == "coordinator" else "client.crt"
        new, old = tmp_path / "new" / site / "startup", made[site] / "startup"
        assert new.joinpath(name).read_bytes() != old.joinpath(name).read_bytes()
        assert is_signed_by(new / name, old / "rootCA.pem")
    assert is_signed_by(
        tmp_path / "new" / "coordinator" / "admin" / "startup" / "client.crt",
        made["a"] / "startup" / "rootCA.pem",
    )
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def is_signed_by(certificate: Path, root: Path) -> bool:
    loaded = [x509.load_pem_x509_certificate(file.read_bytes()) for file in (certificate, root)]
    loaded[0].verify_directly_issued_by(loaded[1])  # raises if it is not
    return True
