"""`tests.flaky` finds what fails now and then, and its seeds replay it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import flaky as campaign
from tests.order import GROUPS, dear_first, shuffled

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests import order, outcomes, randomness

randomness.install()

def pytest_configure(config):
    for plugin in (randomness, order, outcomes):
        config.pluginmanager.register(plugin, plugin.__name__)
"""
# What draws from the noise's source without loading compiled loops: a run takes a second.
LUCKY = """
from hedgerow.privacy.noise import secret_randomness

def test_noise_is_positive():
    assert secret_randomness.below(2) > 0

def test_noise_is_small():
    assert secret_randomness.below(2) < 2
"""
SAMPLER = """
from hedgerow.privacy.noise.mechanisms import SecureSource

def test_noise_is_small():
    assert abs(SecureSource().gaussian(1, 2.0**30)[0]) < 2**40
"""
PLAIN = "def test_two_and_two(): assert 2 + 2 == 4\n"
ORDERED = """
done = []

def test_one(): done.append(1)

def test_two(): assert done
"""


def suite(folder: Path, **files: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    return folder


def python(*words: object, **settings: str) -> subprocess.CompletedProcess[str]:
    # Hypothesis alone takes longer to load than these small suites take to run.
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    path = {"PYTHONPATH": str(ROOT), **plugins, **settings}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEDGEROW_TEST_", "PYTEST_"))}
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, env={**kept, **path}, cwd=ROOT, capture_output=True, text=True, timeout=800
    )


def flaky(folder: Path, *words: object) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    result = folder / "result.json"
    about = ("--seed", 11, "--result", result, *words, "--", "-p", "no:cacheprovider", folder)
    said = python("-m", "tests.flaky", *about)
    return said, json.loads(result.read_text("utf-8"))


def test_a_planted_flaky_test_is_found_and_its_seed_replays_it(tmp_path: Path) -> None:
    folder = suite(tmp_path, lucky=LUCKY, plain=PLAIN, ordered=ORDERED)
    said, result = flaky(folder, "--runs", 6)
    assert said.returncode == 1
    lucky, ordered = "test_lucky.py::test_noise_is_positive", "test_ordered.py::test_two"
    assert set(result["failures"]) == {lucky, ordered}
    assert "assert" in result["failures"][lucky]["why"]
    assert [one["tests"] for one in result["runs"]] == [5] * 6
    red = result["failures"][lucky]["seeds"]
    green = [one["seed"] for one in result["runs"] if one["seed"] not in red]
    assert f"HEDGEROW_TEST_SEED={red[0]} python -m pytest '{lucky}'" in said.stdout
    assert red
    assert green
    for seed, code in ((red[0], 1), (green[0], 0)):  # alone, and not among the others
        test = folder / lucky
        assert python("-m", "pytest", test, HEDGEROW_TEST_SEED=str(seed)).returncode == code


def test_only_tests_that_draw_noise_are_run_again(tmp_path: Path) -> None:
    process = "import subprocess, sys\ndef test_it(): subprocess.run([sys.executable, '-c', ''])\n"
    shared = (
        "import pytest\nfrom hedgerow.privacy.noise import secret_randomness\n"
        "@pytest.fixture(scope='module')\ndef word(): return secret_randomness.below(9)\n"
        "def test_first(word): pass\ndef test_second(word): pass\n"
    )
    small = LUCKY.replace("> 0", "< 2")
    folder = suite(
        tmp_path, lucky=small, sampler=SAMPLER, plain=PLAIN, process=process, shared=shared
    )
    said, result = flaky(folder, "--runs", 2, "--only", "noise")
    assert said.returncode == 0, said.stdout
    assert "0 of the tests failed at least once in 2 runs" in said.stdout
    assert [one["tests"] for one in result["runs"]] == [7, 6]


def test_a_run_that_cannot_start_is_a_failure(tmp_path: Path) -> None:
    said, result = flaky(suite(tmp_path, broken="import nothing_of_that_name\n"), "--runs", 1)
    assert said.returncode == 1
    assert list(result["failures"]) == ["the run itself (exit code 2)"]


def test_the_same_command_goes_on_until_its_runs_are_there(tmp_path: Path) -> None:
    folder = suite(tmp_path, lucky=LUCKY, plain=PLAIN)
    _, whole = flaky(folder, "--runs", 3, "--only", "noise")
    (folder / "result.json").unlink()
    said, first = flaky(folder, "--runs", 2, "--only", "noise")
    assert "going on" not in said.stdout
    said, result = flaky(folder, "--runs", 3, "--only", "noise")
    assert "has 2 runs of this source and selection; going on" in said.stdout
    assert said.stdout.count("HEDGEROW_TEST_SEED=") - len(result["failures"]) == 1
    assert result["runs"][:2] == first["runs"]
    for one in (whole, result):  # the same seeds, selection and failures as in one go
        for about in one["runs"]:
            del about["seconds"]
        assert one == {**whole, "failures": one["failures"]}
    assert {n: f["seeds"] for n, f in result["failures"].items()} == {
        n: f["seeds"] for n, f in whole["failures"].items()
    }
    said, again = flaky(folder, "--runs", 3, "--only", "noise")  # nothing is left to run
    assert "HEDGEROW_TEST_SEED=" not in said.stdout.replace("    HEDGEROW_TEST_SEED=", "")
    assert [one["seed"] for one in again["runs"]] == [one["seed"] for one in result["runs"]]
    said, other = flaky(folder, "--runs", 1)
    assert "is of another campaign (only) and starts anew" in said.stdout
    assert len(other["runs"]) == 1


def test_a_campaign_goes_on_behind_a_commit_that_keeps_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tmp_path / "result.json"
    for n, commit in ((1, "one"), (2, "two-dirty")):
        monkeypatch.setattr(campaign, "commit", lambda commit=commit: commit)
        tally = campaign.Tally("all", ())
        tally.resume(result)
        tally.add(n, 0, {"test_it": {"failed": False, "why": "", "used": []}}, 60.0)
        tally.write(result)
    assert [one["commit"] for one in tally.runs] == ["one", "two-dirty"]
    monkeypatch.setattr(campaign, "source", lambda: "other")
    assert "another campaign (source)" in campaign.Tally("all", ()).resume(result)


def test_no_run_begins_that_would_not_end_in_time(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    tally = campaign.Tally("noise", ["-q"])
    for seconds in (900.0, 120.0, 180.0):  # the first is of all tests, the others of those chosen
        tally.add(1, 0, {"test_it": {"failed": False, "why": "", "used": []}}, seconds)
    tally.chosen = ["test_it"]
    tally.write(result)
    assert tally.seconds_of_a_run() == 180
    about = ("--runs", "5", "--only", "noise", "--result", str(result), "--minutes", "2.9")
    assert campaign.main([*about, "--", "-q"]) == campaign.INTERRUPTED
    assert json.loads(result.read_text("utf-8"))["runs"] == tally.runs


def test_an_interrupted_run_does_not_count_but_what_failed_in_it_does(tmp_path: Path) -> None:
    stop = """
seen = []

def fail_first():  # in whichever order they come
    seen.append(1)
    assert len(seen) > 1
    raise KeyboardInterrupt

def test_a(): fail_first()

def test_b(): fail_first()
"""
    folder = suite(tmp_path, stop=stop)
    said, result = flaky(folder, "--runs", 2)
    assert said.returncode == 1
    assert "does not count; the same command goes on" in said.stdout
    assert result["runs"] == []
    assert len(result["failures"]) == 1
    said, result = flaky(suite(folder, stop="def test_b(): raise KeyboardInterrupt"), "--runs", 2)
    assert len(result["failures"]) == 1  # what was seen before stays
    (folder / "result.json").unlink()
    said, result = flaky(folder, "--runs", 2)
    assert said.returncode == 2  # not all runs are there
    assert result["failures"] == {}


NAMES = [f"{group}x.py::test_{i}" for group in GROUPS for i in range(3)]
NAMES += [f"tests/data/test_{k}.py::test_{i}" for k in range(20) for i in range(5)]


@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_tests_keep_groups_and_files_together(seed: int) -> None:
    order = shuffled(NAMES, seed)
    assert sorted(order) == sorted(NAMES)
    assert order == shuffled(NAMES[::-1], seed)
    assert order not in (shuffled(NAMES, 3), dear_first(NAMES))
    files = [name.split("::")[0] for name in order]
    changes = sum(a != b for a, b in pairwise(files))
    assert changes == len(set(files)) - 1
