"""Debian's Chromium without a window, driven by Selenium; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser of its own; where the tests must not skip, a missing one fails them."""
    try:
        from selenium import webdriver
    except ModuleNotFoundError:
        webdriver = None  # type: ignore[assignment]
    if webdriver is None or CHROMIUM is None or DRIVER is None:
        words = "Chromium, its driver or Selenium is not installed"
        if os.environ.get("HEDGEROW_BROWSER") == "required":
            pytest.fail(words)
        pytest.skip(words)
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--disable-background-networking", "--no-first-run",
                 "--disable-dev-shm-usage"):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    driver.implicitly_wait(20)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    """What a person does and sees."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)

    def sign_in(self, base: str, code: str) -> None:
        self.driver.delete_all_cookies()
        self.open("about:blank")
        self.open(f"{base}/enter#{code}")
        self.click("#enter button")
        self.wait_for(".who")

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def wait_for(self, selector: str) -> Any:
        return self.one(selector)

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def fill(self, selector: str, text: str) -> None:
        self.one(selector).send_keys(text)

    def text(self, selector: str = "main") -> str:
        return str(self.one(selector).text)

    def await_text(self, words: str, selector: str = "main") -> None:
        """Until the page that a click leads to says so."""
        from selenium.common.exceptions import StaleElementReferenceException

        deadline, text = time.monotonic() + 60, ""
        while time.monotonic() < deadline:
            with suppress(StaleElementReferenceException):
                text = self.text(selector)
                if words in text:
                    return
            time.sleep(0.05)
        pytest.fail(f"{words!r} never appeared; there is: {text}")

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self) -> str:
        """The text or name of what has the focus."""
        return str(self.run("const e = document.activeElement; return e.name || e.textContent;"))

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def shown_as(self, width: int, dark: bool = False, height: int = 900) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def picture(self, file: Path, width: int = 1200, dark: bool = False, most: int = 2400) -> None:
        """The page from top to bottom."""
        self.shown_as(width, dark)
        height = int(self.run("return document.documentElement.scrollHeight"))
        self.shown_as(width, dark, min(height, most))
        self.driver.save_screenshot(str(file))

    def complaints(self) -> list[str]:
        """What the browser's console says, but for replies that are meant to be refusals."""
        entries = self.driver.get_log("browser")
        return [e["message"] for e in entries if "status of 4" not in e["message"]]


# For every piece of text that can be seen: its contrast to what is behind it, by WCAG 2's formula.
CONTRAST = """
function parts(text) { return text.match(/[0-9.]+/g).map(Number); }
function light(c) {
  var v = c.slice(0, 3).map(function (x) {
    x /= 255; return x <= 0.03928 ? x / 12.92 : Math.pow((x + 0.055) / 1.055, 2.4); });
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
}
function behind(e) {
  for (; e; e = e.parentElement) {
    var c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0.99) { return c; }
  }
  return [255, 255, 255];
}
var found = [];
document.querySelectorAll("body *").forEach(function (e) {
  var own = Array.from(e.childNodes).some(function (n) {
    return n.nodeType === 3 && n.textContent.trim(); });
  if (!own || e.closest("svg") || !e.getClientRects().length) { return; }
  var style = getComputedStyle(e), a = light(parts(style.color)), b = light(behind(e));
  var contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  var large = parseFloat(style.fontSize) >= 24;
  var words = e.textContent.trim().slice(0, 40);
  if (contrast < (large ? 3 : 4.5)) { found.push(words + ": " + contrast); }
});
return found;
"""
