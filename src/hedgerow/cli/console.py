"""`hedgerow console`: pages for the operator and the privacy officer of a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.screen import tell
from hedgerow.errors import SettingsError

if TYPE_CHECKING:
    from hedgerow.deployment.console.server import ConsoleSettings


def console(
    path: Annotated[
        Path | None, typer.Argument(metavar="[SITE]", help="A party's or coordinator's folder.")
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where browsers reach it.")
    ] = "127.0.0.1:8420",
    host_name: Annotated[
        list[str] | None,
        typer.Option("--host-name", help="A further name under which it is reached; repeatable."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="TLS certificate (PEM), with its chain.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="Its key (PEM).")] = None,
    account: Annotated[
        str, typer.Option("--account", help="Print a one-time link for this account.")
    ] = "",
    link_only: Annotated[
        bool,
        typer.Option("--link-only", help="Only print the link: a console runs there already."),
    ] = False,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket", help="Instead of SITE: the site's console socket, from another account."
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="With --socket: folder for token and log.")
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="With --socket: what pages call the site.")
    ] = "",
    coordinator: Annotated[
        bool, typer.Option("--coordinator", help="With --socket: it is a coordinator's.")
    ] = False,
) -> None:
    """Serve the pages of a site, on this machine alone, in the foreground until Ctrl-C.

    It speaks to the site's process and has no rows and no keys. People sign in by one-time links
    for named accounts.
    """
    if (path is None) == (socket is None):
        raise SettingsError(
            "name either the SITE folder, or with --socket the socket that its process shares with "
            "this account. Nothing was started."
        )
    further = (listen, tuple(host_name or ()), certificate, key)
    if path is None:
        assert socket is not None
        if state is None or account or link_only:
            raise SettingsError(
                "--socket needs --state FOLDER, for a token and a log, and links are made by the "
                "account that has the site folder: hedgerow console SITE --account NAME "
                "--link-only. Nothing was started."
            )
        role = "coordinator" if coordinator else "party"
        _serve(_settings(name or role, role, socket.resolve(), state, *further), "")
        return
    from hedgerow.deployment.accounts import Accounts
    from hedgerow.engines.site import Site

    site = Site.open(path)
    everyone = Accounts(site).everyone()
    if not account and len(everyone) == 1:
        account = everyone[0].name
    if not everyone:
        raise SettingsError(
            f"{path} has no accounts, so nobody could sign in. Nothing was started. Add one: "
            + (
                f"hedgerow party account add {path} 'Anna Meyer' --role privacy-officer"
                if site.role == "party"
                else f"hedgerow coordinator account {path} 'Jo Lead' --role operator"
            )
        )
    code = Accounts(site).make_link(account) if account else ""
    settings = _settings(site.name, site.role, site.console_socket, site.folder / "console",
                         *further)  # fmt: skip
    if link_only:
        settings.address()
        tell(_link(settings.url(settings.address()[1]), code))
        return
    if not account:
        tell(f"Make a link for one of {', '.join(one.name for one in everyone)}: hedgerow console "
             f"{path} --account NAME --link-only")  # fmt: skip
    _serve(settings, code)


def _settings(
    title: str,
    role: str,
    socket: Path,
    state: Path,
    listen: str,
    names: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
) -> ConsoleSettings:
    try:
        from hedgerow.deployment.console.server import ConsoleSettings
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"the console needs {error.name}: pip install 'hedgerow[console]'. Nothing was started."
        ) from error
    return ConsoleSettings(title, role, socket, state, listen, names, certificate, key)


def _serve(settings: ConsoleSettings, code: str) -> None:
    from hedgerow.deployment.console.server import ConsoleServer

    server = ConsoleServer(settings)

    def ready() -> None:
        tell(f"The console of {settings.title}: {server.url}. Ctrl-C ends it.")
        if code:
            tell(_link(server.url, code))
        tell(f"Monitoring: {server.url}/metrics, token in {settings.state / 'metrics-token'}.")

    server.run(ready)


def _link(url: str, code: str) -> str:
    return f"Sign in once, within a day: {url}/enter#{code}"
