"""`hedgerow console`: what it refuses to start, and the links that it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hedgerow.cli.app import app
from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.server import ConsoleServer, ConsoleSettings
from hedgerow.engines.site import Site
from hedgerow.errors import SettingsError


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["console", *(str(word) for word in words)])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site.create(tmp_path / "hospital-a", "hospital-a")


def settings(site: Site, **more: object) -> ConsoleSettings:
    return ConsoleSettings(site.name, "party", site.console_socket, site.folder / "console", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("listen", ["0.0.0.0:8420", "192.168.1.7:8420", "[::]:8420", "host:1"])
def test_beyond_this_machine_it_needs_tls(site: Site, listen: str) -> None:
    with pytest.raises(SettingsError, match=r"in the clear.*Nothing was started.*--certificate"):
        settings(site, listen=listen).address()


@pytest.mark.parametrize("listen", ["8420", "127.0.0.1:", "127.0.0.1:99999", ":8420"])
def test_an_address_that_is_none_is_named(site: Site, listen: str) -> None:
    with pytest.raises(SettingsError, match="no HOST:PORT"):
        settings(site, listen=listen).address()


def test_a_port_in_use_is_named(site: Site) -> None:
    first = ConsoleServer(settings(site, listen="127.0.0.1:0"))
    try:
        with pytest.raises(SettingsError, match="cannot be listened at"):
            ConsoleServer(settings(site, listen=f"127.0.0.1:{first.port}"))
    finally:
        first.close()


def test_without_accounts_it_says_how_to_make_one(site: Site) -> None:
    result = call(site.path)
    assert isinstance(result.exception, SettingsError)
    assert "hedgerow party account add" in str(result.exception)


def test_it_wants_a_site_or_a_socket_with_a_folder_of_its_own(site: Site, tmp_path: Path) -> None:
    for words in ((), (site.path, "--socket", "x"), ("--socket", "x"),
                  ("--socket", "x", "--state", tmp_path, "--account", "Anna")):  # fmt: skip
        assert isinstance(call(*words).exception, SettingsError), words


def test_a_link_is_printed_for_a_console_that_runs(site: Site) -> None:
    Accounts(site).put("Anna Meyer", "reader")
    Accounts(site).put("Jo Berger", "operator")
    result = call(site.path, "--account", "Anna Meyer", "--link-only", "--listen", "127.0.0.1:81")
    found = re.search(r"http://127\.0\.0\.1:81/enter#(\S+)", result.stderr)
    assert found is not None
    assert Accounts(site).redeem(found[1]).name == "Anna Meyer"
    assert "no account" in str(call(site.path, "--account", "Nobody", "--link-only").exception)
