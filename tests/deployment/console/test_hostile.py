"""Requests that no page of ours sends, to every route: they get nothing, and are in the log."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

import pytest
from starlette.routing import Route

from hedgerow.deployment.console.metrics import read_token
from tests.deployment.console.conftest import WAITING
from tests.deployment.console.rig import N_ROWS, Reply, Rig

OFFICER, READER = "Paula Privacy", "Rita Reader"
OPEN = {"/enter", "/console.css", "/console.js", "/icon.svg"}  # shown to everybody
FORM = "application/x-www-form-urlencoded"
Attack = Callable[[Rig, str, str], Reply]


def routes(rig: Rig) -> list[tuple[str, str]]:
    """Every method and address of the application."""
    app = rig.server.app
    found = []
    for route in app.routes:
        assert isinstance(route, Route)
        path = route.path.replace("{hash}", WAITING.hash).replace("{run}", "run-0001")
        found += [(method, path) for method in sorted(route.methods or ()) if method != "HEAD"]
    return found


def ask(rig: Rig, method: str, path: str, body: str | bytes | None = None, **more: str) -> Reply:
    """A request with a person's own cookie and form, but for what `more` changes."""
    headers = {
        "cookie": rig.sign_in(OFFICER), "origin": f"http://{rig.host}", "content-type": FORM,
    }  # fmt: skip
    headers |= {key.replace("_", "-"): value for key, value in more.items()}
    headers = {key: value for key, value in headers.items() if value != "(none)"}
    if method == "POST" and body is None:
        token = rig.token(OFFICER)
        body = f"token={token}&decision=approve&reason=x&sure=yes&roster=x&code=x"
    return rig.request(method, path, body, headers)


def header(**more: str) -> Attack:
    return lambda rig, method, path: ask(rig, method, path, **more)


def verb(name: str) -> Attack:
    return lambda rig, method, path: ask(rig, name, path)


def path_trick(change: Callable[[str], str]) -> Attack:
    return lambda rig, method, path: ask(rig, method, change(path))


def raw(text: str) -> Attack:
    """Bytes that no client library sends."""

    def attack(rig: Rig, method: str, path: str) -> Reply:
        filled = text.format(
            method=method, path=path, host=rig.host, cookie=rig.sign_in(OFFICER), crlf="\r\n"
        )
        with socket.create_connection(("127.0.0.1", rig.server.port), timeout=30) as connection:
            content = b""
            # Whoever closes with bytes unread resets the connection; what came before that counts.
            with suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(filled.encode("latin-1"))
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    content += piece
        first, *lines = content.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        status = int(first.split()[1]) if first else 400
        headers = dict(line.lower().split(": ", 1) for line in lines)
        return Reply(status, content.decode("utf-8", "replace"), headers, content)

    return attack


# Whatever is sent, whoever sends it, nothing must come back: no session that counts, or no request
# that a page of ours makes.
ATTACKS: dict[str, Attack] = {
    "no session": header(cookie="(none)"),
    "an empty session": header(cookie="hedgerow="),
    "an invented session": header(cookie="hedgerow-1=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    "a session of null bytes": header(cookie="hedgerow-1=%00%00"),
    "a session of 4,000 letters": header(cookie="hedgerow-1=" + "a" * 4000),
    "a session with a path": header(cookie="hedgerow-1=../../etc/passwd"),
    "a session in JSON": header(cookie='hedgerow-1={"role":"privacy-officer"}'),
    "a session in another cookie": header(cookie="session=x; role=privacy-officer; admin=1"),
    "a bearer token instead": header(cookie="(none)", authorization="Bearer x"),
    "basic authentication instead": header(cookie="(none)", authorization="Basic YTpi"),
    "another host": header(host="evil.example"),
    "another host at our port": header(host="evil.example:8420"),
    "a rebound name": header(host="127.0.0.1.evil.example:80"),
    "our address without the port": header(host="127.0.0.1"),
    "an address of zeros": header(host="0.0.0.0"),
    "an address as one number": header(host="2130706433"),
    "an empty host": header(host=""),
    "a host with a user": header(host="x@127.0.0.1"),
    "a host with a path": header(host="127.0.0.1/evil"),
    "a forwarded host alone": header(host="evil.example", x_forwarded_host="127.0.0.1"),
    "a forwarded address": header(cookie="(none)", x_forwarded_for="127.0.0.1", x_real_ip="::1"),
    "an original address": header(cookie="(none)", x_original_url="/", x_rewrite_url="/ledger"),
    "another method by a header": header(cookie="(none)", x_http_method_override="GET"),
    "a user by a header": header(cookie="(none)", remote_user="Paula Privacy", x_user="Paula"),
    "PUT": verb("PUT"),
    "DELETE": verb("DELETE"),
    "PATCH": verb("PATCH"),
    "OPTIONS": verb("OPTIONS"),
    "TRACE": verb("TRACE"),
    "CONNECT": verb("CONNECT"),
    "PROPFIND": verb("PROPFIND"),
    "a method of small letters": verb("get"),
    "an invented method": verb("STEAL"),
    "dots before it": path_trick(lambda path: f"/../../..{path}/../../etc/passwd"),
    "coded dots": path_trick(lambda path: f"{path}/%2e%2e/%2e%2e/etc/passwd"),
    "doubly coded dots": path_trick(lambda path: f"{path}/%252e%252e/site.toml"),
    "a null byte": path_trick(lambda path: f"{path}%00.css"),
    "a backslash": path_trick(lambda path: f"{path}\\..\\site.toml"),
    "a semicolon": path_trick(lambda path: f"{path};x=/console.css"),
    "a file of the site": path_trick(lambda path: "/signing-key.pem"),
    "a template": path_trick(lambda path: "/templates/party.html"),
    "a file under the style": path_trick(lambda path: "/console.css/../ledger.sqlite"),
    "an address of 3,000 letters": path_trick(lambda path: f"{path}?x={'a' * 3000}"),
    "another language's letters": path_trick(lambda path: path + quote("/\u202eledger")),
    "an absolute address": path_trick(lambda path: f"http://evil.example{path}"),
    "a body of a megabyte": lambda rig, method, path: ask(rig, "POST", path, "a" * 1_000_000),
    "a body of unknown length": raw(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\ncookie: {cookie}\r\n"
        "content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n"
        "4\r\nzzzz\r\nnot a length\r\n"
    ),
    "two lengths": raw(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 4\r\ncontent-length: 9\r\n\r\nabcd"
    ),
    "length and pieces at once": raw(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 4\r\n"
        "transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    ),
    "two hosts": raw(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nhost: evil.example\r\ncookie: {cookie}\r\n\r\n"
    ),
    "no host": raw("{method} {path} HTTP/1.0\r\ncookie: {cookie}\r\n\r\n"),
    "a header of 100,000 letters": raw(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nx: " + "a" * 100_000 + "\r\n\r\n"
    ),
    "a line feed in a header": raw(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nx: a\nset-cookie: b\r\n\r\n"
    ),
    "no HTTP at all": raw("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
}
# A form that comes from elsewhere, or was not made for this session.
FORMS: dict[str, Attack] = {
    "no token": lambda rig, method, path: ask(rig, method, path, "decision=approve&reason=x"),
    "a wrong token": lambda rig, method, path: ask(rig, method, path, "token=0&decision=approve"),
    "another's token": lambda rig, method, path: ask(
        rig, method, path, f"token={rig.token(READER)}&decision=approve&reason=x&sure=yes"
    ),
    "another origin": header(origin="http://evil.example"),
    "no origin": header(origin="(none)"),
    "an origin of nothing": header(origin="null"),
    "our host over another scheme": header(origin="https://127.0.0.1"),
    "a page of another site": header(origin="(none)", referer="http://evil.example/127.0.0.1"),
    "a frame of another site": header(sec_fetch_site="cross-site"),
    "another port of this machine": header(sec_fetch_site="same-site"),
    "JSON": header(content_type="application/json"),
    "plain text": header(content_type="text/plain"),
    "parts": header(content_type="multipart/form-data; boundary=x"),
}


def secrets_of(rig: Rig) -> list[str]:
    return [
        rig.ledger.last()[1], "run-0005", "Prof. Weber", "Covered by the vote", str(N_ROWS),
        f"{N_ROWS:,}", WAITING.request.purpose, "Heart Study", "PRIVATE KEY", "hedgerow_up",
        read_token(rig.site.folder / "console"),
    ]  # fmt: skip


def check_nothing(rig: Rig, reply: Reply, what: str) -> None:
    assert reply.status >= 400 or reply.headers.get("location") == "/enter", (what, reply.status)
    for secret in secrets_of(rig):
        assert secret not in reply.text, what
    assert "set-cookie" not in reply.headers, what


def test_there_are_fifty_kinds_of_attacks() -> None:
    assert len(ATTACKS) >= 50


@pytest.mark.parametrize("kind", ATTACKS)
def test_hostile_requests_get_nothing_from_any_route(shown: Rig, kind: str) -> None:
    before, entries = shown.ledger.last(), len(shown.log().splitlines())
    refused = 0
    for method, path in routes(shown):
        reply = ATTACKS[kind](shown, method, path)
        if path in OPEN and reply.status in (200, 401):
            continue  # what everybody may see, whoever asks
        check_nothing(shown, reply, f"{kind}: {method} {path}")
        refused += reply.status >= 400 and bool(reply.text)
    assert shown.ledger.last() == before
    logged = [json.loads(line) for line in shown.log().splitlines()[entries:]]
    told = [e for e in logged if e.get("about") == "refused" or "Invalid HTTP" in e["text"]]
    assert len(told) >= refused


@pytest.mark.parametrize("kind", FORMS)
def test_forged_forms_change_nothing(shown: Rig, kind: str) -> None:
    before = shown.ledger.last()
    for method, path in routes(shown):
        if method == "POST" and not (path == "/enter" and "token" in kind):
            check_nothing(shown, FORMS[kind](shown, method, path), f"{kind}: {path}")
    assert shown.ledger.last() == before
    assert shown.get("/", OFFICER).status == 200  # nobody was signed out either


def test_a_reader_gets_nothing_by_forms_of_officers_and_operators(shown: Rig) -> None:
    before = shown.ledger.last()
    for path in (f"/plans/{WAITING.hash}", "/ledger/settle"):
        fields = {"decision": "approve", "reason": "x", "sure": "yes"}
        assert shown.post(path, fields, READER).status == 403
    assert shown.ledger.last() == before


@pytest.mark.parametrize("path", ["/", "/enter", "/console.css", "/nothing", "/metrics"])
def test_every_reply_forbids_frames_scripts_and_other_hosts(shown: Rig, path: str) -> None:
    headers = shown.get(path, OFFICER).headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
