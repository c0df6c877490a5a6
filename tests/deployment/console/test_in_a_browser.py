"""Pages as Chromium shows them: light, dark, on a phone, by keyboard alone, and inside a frame."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest

from hedgerow.deployment.accounts import Accounts
from tests.deployment.console.browser import CONTRAST, Browser, browser
from tests.deployment.console.conftest import WAITING
from tests.deployment.console.rig import Rig

PAGES = ("/", "/budget", "/plans", f"/plans/{WAITING.hash}", "/ledger", "/standing", "/refusals")
TAB, ENTER, SPACE = "\ue004", "\ue007", " "


@pytest.fixture(scope="module")
def seen() -> Iterator[Browser]:
    with browser() as made:
        yield made


def signed_in(seen: Browser, rig: Rig, name: str = "Paula Privacy") -> str:
    base = f"http://{rig.host}"
    seen.sign_in(base, Accounts(rig.site).make_link(name))
    return base


def test_pages_are_readable_light_dark_and_on_a_phone(seen: Browser, shown: Rig) -> None:
    base = signed_in(seen, shown)
    for path in PAGES:
        seen.open(base + path)
        for width, dark in ((1200, False), (1200, True), (390, False), (390, True)):
            seen.shown_as(width, dark)
            assert seen.run(CONTRAST) == [], (path, width, dark)
            assert seen.run("return document.documentElement.scrollWidth") <= width, path
    assert seen.complaints() == []
    seen.shown_as(1200)


def test_the_link_is_not_in_the_address_afterwards(seen: Browser, shown: Rig) -> None:
    base = signed_in(seen, shown, "Rita Reader")
    assert seen.driver.current_url == f"{base}/"
    assert seen.text(".who").startswith("Rita Reader, reader")
    assert seen.run("return document.cookie") == ""  # no script can take the session away
    seen.click(".who button")
    seen.wait_for("#enter")
    seen.open(f"{base}/ledger")
    assert seen.driver.current_url == f"{base}/enter"


def test_a_person_decides_by_keyboard_alone(seen: Browser, rig: Rig) -> None:
    base = signed_in(seen, rig)
    seen.open(f"{base}/plans/{WAITING.hash}")
    for _ in range(40):
        seen.press(TAB)
        if seen.focused() == "decision":
            break
    seen.press(SPACE, TAB, "Vote 21", TAB, TAB, ENTER)
    seen.await_text("Vote 21")
    (line,) = rig.ledger.lines("hospital-a", "approve", WAITING.run)
    assert line.values["reason"] == "Vote 21"
    assert seen.complaints() == []


def test_another_site_can_neither_frame_a_page_nor_send_its_form(seen: Browser, rig: Rig) -> None:
    base = signed_in(seen, rig)
    target = f"{base}/plans/{WAITING.hash}"
    page = f"""<iframe src="{target}"></iframe><form method=post action="{target}">
        <input name=decision value=approve><input name=reason value=x><button>go</button></form>"""

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil) as evil:
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        seen.open(f"http://localhost:{evil.server_address[1]}/")
        seen.driver.switch_to.frame(seen.one("iframe"))
        assert "Sepsis" not in str(seen.run("return document.documentElement.textContent"))
        seen.driver.switch_to.default_content()
        seen.click("button")
        seen.await_text("did not come from a page of this console", "body")
        evil.shutdown()
    assert not rig.ledger.lines("hospital-a", "approve", WAITING.run)
    seen.complaints()


def test_the_head_is_copied_and_the_ledger_verified(seen: Browser, shown: Rig) -> None:
    base = signed_in(seen, shown)
    seen.open(f"{base}/ledger")
    assert seen.text("#head") == shown.ledger.last()[1]
    seen.click("[data-copy=head]")
    seen.click("form[action='/ledger/verify'] button")
    seen.await_text("verified", "#verified")
    assert seen.complaints() == []
