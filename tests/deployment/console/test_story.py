"""A privacy officer's story from start to end, over a federation of processes and in a browser.

A plan arrives with a purpose, is compared, rejected with a reason, changed, approved, and runs; the
budget moves by what the ledger says, and the report has the same numbers.
"""

from __future__ import annotations

import io
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hedgerow.deployment.accounts import Accounts
from hedgerow.deployment.console.metrics import read_token
from hedgerow.deployment.trial import Sites, free_port, hedgerow
from hedgerow.engines.site import COORDINATOR, Site
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.spending import spending
from tests.cli.conftest import write_csv
from tests.conftest import MIXED, mixed_table
from tests.deployment.console.browser import Browser, browser
from tests.deployment.console.rig import LIMITS

OFFICER, LEAD = "Paula Privacy", "Jo Lead"


@contextmanager
def console_of(site: Site, folder: Path) -> Iterator[str]:
    """`hedgerow console` as a process of its own."""
    port = free_port()
    words = ["console", str(site.path), "--listen", f"127.0.0.1:{port}"]
    with (folder / "console.log").open("ab") as log:
        process = subprocess.Popen(hedgerow(words), stdout=log, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "The console of" in line:
                break
        else:
            pytest.fail("the console did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    """Three parties and a coordinator; a person of the first one decides on every plan."""
    MIXED.write(tmp_path / "schema.toml")
    tables = {}
    for seed, name in enumerate(("hospital-a", "hospital-b", "hospital-c")):
        tables[name] = tmp_path / f"{name}.csv"
        write_csv(tables[name], mixed_table(150, seed))
    made = Sites.make(tmp_path, tables, tmp_path / "schema.toml")
    (made.by_name["hospital-a"].folder / "limits.toml").write_text(LIMITS)
    Accounts(made.by_name["hospital-a"]).put(OFFICER, "privacy-officer")
    Accounts(made.by_name[COORDINATOR]).put(LEAD, "operator")
    # Parties bring compiled loops along; compiling at three of them at once takes minutes.
    subprocess.run(hedgerow(["warm"]), check=True, capture_output=True, timeout=900)
    with made:
        yield made


def train(sites: Sites, folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    site = sites.by_name[COORDINATOR]
    command = [
        "train", "--site", str(site.path), "--schema", str(folder / "schema.toml"), "--json",
        "--method", "random-trees", "--delta", "1e-6", "--asker", "Prof. Weber", "--set",
        "n_trees=3", "--out", str(folder / f"{name}.hedge"), *words,
    ]  # fmt: skip
    return subprocess.run(hedgerow(command), capture_output=True, text=True, timeout=240)


def total_of(site: Site) -> float:
    with Ledger.open(site.ledger_path, create=False) as ledger:
        return spending(ledger, site.name).epsilon(1e-6)


def decide(seen: Browser, base: str, what: str, reason: str, word: str = "") -> None:
    seen.open(f"{base}/plans")
    seen.click("article .button")
    seen.click(f"input[value={what}]")
    seen.fill("#reason", reason)
    if word:
        seen.click(f"#word option[value={word}]")
    seen.click("form[data-once] button")
    seen.await_text(reason)


def test_a_plan_is_rejected_changed_approved_and_runs(sites: Sites, tmp_path: Path) -> None:
    site = sites.by_name["hospital-a"]
    with browser() as seen, console_of(site, tmp_path) as base:
        code = Accounts(site).make_link(OFFICER)
        seen.sign_in(base, code)
        assert "connected" in seen.text()

        dear = train(sites, tmp_path, "dear", "--epsilon", "1.5", "--purpose", "Readmission, all")
        assert dear.returncode == 3, dear.stderr
        assert "not-approved" in dear.stderr
        seen.open(f"{base}/plans")
        assert "Readmission, all" in seen.text()
        decide(seen, base, "reject", "Too dear for this question", "rejected-cost")
        again = train(sites, tmp_path, "dear", "--epsilon", "1.5", "--purpose", "Readmission, all")
        assert again.returncode == 3
        assert "rejected-cost" in again.stderr
        assert "Too dear" not in again.stderr + again.stdout  # reasons stay at the site
        seen.open(f"{base}/budget")
        assert "0 runs reserved epsilon = 0 in total" in seen.text()

        words = ("--epsilon", "0.5", "--purpose", "Readmission, women")
        assert train(sites, tmp_path, "cheap", *words).returncode == 3
        decide(seen, base, "approve", "Vote 12 of the ethics board")
        done = train(sites, tmp_path, "cheap", *words)  # the documented command, once more
        assert done.returncode == 0, done.stderr

        check_the_same_numbers(seen, base, site, tmp_path)
        assert seen.complaints() == []
        check_the_coordinator(seen, sites, tmp_path, json.loads(done.stdout)["run"])


def check_the_same_numbers(seen: Browser, base: str, site: Site, folder: Path) -> None:
    """The ledger, the page, its curve, the report and the metrics agree."""
    total = total_of(site)
    assert total > 0.1
    seen.open(f"{base}/budget")
    assert f"1 run reserved epsilon = {total:.4g} in total" in seen.text()
    assert len(seen.driver.find_elements("css selector", "svg.hedgerow circle")) == 1
    seen.open(f"{base}/ledger")
    assert "Vote 12 of the ethics board" in seen.text()
    seen.click("form[action='/ledger/verify'] button")
    seen.await_text("verified", "#verified")
    cookie = seen.driver.get_cookies()[0]
    pdf = fetched(f"{base}/ledger.pdf", {"cookie": f"{cookie['name']}={cookie['value']}"})
    pypdf = pytest.importorskip("pypdf")
    pages = pypdf.PdfReader(io.BytesIO(pdf)).pages
    text = " ".join(" ".join(page.extract_text() for page in pages).split())
    assert f"epsilon = {total:.4g} in total" in text
    assert "Readmission, women" in text
    token = read_token(site.folder / "console")
    metrics = fetched(f"{base}/metrics", {"authorization": f"Bearer {token}"}).decode()
    used = [line for line in metrics.splitlines() if line.startswith("hedgerow_epsilon_used")]
    assert float(used[-1].rsplit(" ", 1)[1]) == pytest.approx(total, rel=1e-9)
    assert "hedgerow_connected 1" in metrics
    for line in (site.folder / "logs" / "party.log").read_text().splitlines():
        assert "rows" not in json.loads(line)["text"].replace("look once at what the schema does "
                                                              "to the rows", "")  # fmt: skip


def check_the_coordinator(seen: Browser, sites: Sites, folder: Path, run: str) -> None:
    site = sites.by_name[COORDINATOR]
    with console_of(site, folder) as base:
        seen.sign_in(base, Accounts(site).make_link(LEAD))
        for name in ("hospital-a", "hospital-b", "hospital-c"):
            assert name in seen.text()
        assert seen.text().count("\nconnected") == 3
        seen.open(f"{base}/runs")
        assert "Readmission, women" in seen.text()
        assert "finished" in seen.text()
        seen.open(f"{base}/runs/{run}")
        assert "hospital-a, hospital-b, hospital-c" in seen.text()
        seen.open(f"{base}/runs/{run}/model")
        assert "Whoever sees" in seen.text()
        for path in ("/budget", "/ledger", "/standing", "/refusals"):
            seen.open(base + path)
            assert seen.run("return document.querySelector('h1').textContent")
        assert "rejected-cost" in seen.text()
        cookie = seen.driver.get_cookies()[0]
        headers = {"cookie": f"{cookie['name']}={cookie['value']}"}
        assert b"<html" in fetched(f"{base}/runs/{run}/report.html", headers)
        assert fetched(f"{base}/ledger.pdf", headers).startswith(b"%PDF")
        assert seen.complaints() == []


def fetched(url: str, headers: dict[str, str]) -> bytes:
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        content: Any = reply.read()
    return bytes(content)
