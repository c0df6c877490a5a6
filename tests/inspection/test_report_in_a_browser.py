"""The report as a browser draws and prints it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hedgerow.inspection.report import report_html
from tests import newcomer
from tests.inspection.test_report import evaluation_of, trained

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_it_without_complaint(tmp_path: Path, dark: bool) -> None:
    image = pytest.importorskip("PIL.Image")
    model, ledger = trained()
    (tmp_path / "report.html").write_text(report_html(model, ledger, evaluation_of(model)), "utf-8")
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--window-size=1200,3000", f"--screenshot={tmp_path / 'shot.png'}",
            f"file://{tmp_path / 'report.html'}",
        ],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    shot = image.open(tmp_path / "shot.png").convert("L")
    assert shot.size == (1200, 3000)
    corner, darkest, lightest = shot.getpixel((2, 2)), *shot.getextrema()
    assert (corner < 60) if dark else (corner > 200)
    assert lightest - darkest > 180  # there is something to read


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
def test_on_paper_promises_are_unfolded_and_long_lists_are_left_out(tmp_path: Path) -> None:
    model, ledger = trained()
    page = report_html(model, ledger, evaluation_of(model))
    (tmp_path / "report.html").write_text(page, "utf-8")
    subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={tmp_path / 'page.pdf'}",
            f"file://{tmp_path / 'report.html'}",
        ],
        capture_output=True, timeout=600, check=True,
    )  # fmt: skip
    text = subprocess.run(
        ["pdftotext", str(tmp_path / "page.pdf"), "-"], capture_output=True, text=True, check=True
    ).stdout
    assert "The evaluation’s statement" in text or "The evaluation's statement" in text
    assert text.count("Whoever sees") == 2  # the model's promise and that of the evaluation
    assert "All settings" in page
    assert "All settings" not in text


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_page_with_nothing_on_it_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "empty.html").write_text("<html></html>")
    assert newcomer.render(tmp_path / "empty.html", tmp_path / "empty.png") == 1
