"""Processes die at every boundary; ledgers verify, the same command resumes, nothing is lost."""

from __future__ import annotations

import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hedgerow.failpoints import FAIL_POINTS
from hedgerow.model.ensemble import Ensemble
from tests.crashes.runs import KILLED, ROOT, TREES, Commands, check_ledger, command
from tests.slow import slow


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    made = Commands(tmp_path_factory.mktemp("commands"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> Ensemble:
    """The model of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    done = commands.run(command(folder, "model.hedge", spare=10))
    assert done.returncode == 0, done.stderr
    return Ensemble.load(folder / "model.hedge")


def killed_until_done(commands: Commands, folder: Path, kills: list[str]) -> Ensemble:
    """Run one command over and over, killed once at each of `kills`, then to its end."""
    arguments = command(folder, "model.hedge", spare=10)
    released = 0
    for fail_at in kills:
        died = commands.run(arguments, fail_at)
        assert died.returncode == KILLED, (fail_at, died.returncode, died.stderr)
        charges, now = check_ledger(folder / "model.hedge.ledger")
        assert charges >= now >= released
        released = now
    done = commands.run(arguments)
    assert done.returncode == 0, done.stderr
    charges, released = check_ledger(folder / "model.hedge.ledger")
    assert released == TREES + 1
    assert charges <= TREES + 1 + 10
    return Ensemble.load(folder / "model.hedge")


def test_killed_once_at_every_boundary_the_run_resumes_to_the_same_model(
    commands: Commands, tmp_path: Path, whole: Ensemble
) -> None:
    order = ["reserve", "charge", "sync", "ask", "answer", "noise", "store", "write-model"]
    assert sorted(order) == sorted(FAIL_POINTS)
    assert killed_until_done(commands, tmp_path, [f"{name}@1" for name in order]) == whole


@slow
def test_killed_three_times_at_random_the_run_resumes_to_the_same_model(
    commands: Commands, tmp_path: Path, whole: Ensemble
) -> None:
    rng = np.random.default_rng(11)
    points = ["charge", "sync", "ask", "answer", "noise", "store"]
    kills = [f"{rng.choice(points)}@{rng.integers(1, 3)}" for _ in range(2)]
    assert killed_until_done(commands, tmp_path, [*kills, "write-model@1"]) == whole


def test_without_spares_a_lost_slot_makes_the_model_one_tree_shorter(
    commands: Commands, tmp_path: Path
) -> None:
    arguments = command(tmp_path, "model.hedge", spare=0)
    assert commands.run(arguments, "noise@3").returncode == KILLED
    done = commands.run(arguments)
    assert done.returncode == 0, done.stderr
    assert len(Ensemble.load(tmp_path / "model.hedge").trees) == 1 + TREES - 1
    assert check_ledger(tmp_path / "model.hedge.ledger") == (TREES + 1, TREES)


def of_the_default(folder: Path, spare: int) -> list[str]:
    return command(folder, "model.hedge", spare, method=())


def test_the_default_resumes_to_the_same_model_where_no_answer_was_lost(
    commands: Commands, tmp_path: Path
) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    done = commands.run(of_the_default(tmp_path / "whole", 2))
    assert done.returncode == 0, done.stderr
    asked = check_ledger(tmp_path / "whole" / "model.hedge.ledger")
    assert asked[0] == asked[1] > 8
    arguments = of_the_default(tmp_path / "killed", 2)
    for fail_at in ("charge@1", "charge@9", "write-model@1"):
        died = commands.run(arguments, fail_at)
        assert died.returncode == KILLED, (fail_at, died.returncode, died.stderr)
        check_ledger(tmp_path / "killed" / "model.hedge.ledger")
    assert commands.run(arguments).returncode == 0
    assert check_ledger(tmp_path / "killed" / "model.hedge.ledger") == asked
    models = [Ensemble.load(tmp_path / name / "model.hedge") for name in ("whole", "killed")]
    assert models[0] == models[1]


@pytest.mark.parametrize("spare", [0, 2])
def test_the_default_goes_on_after_lost_answers(
    commands: Commands, tmp_path: Path, spare: int
) -> None:
    """With spares a lost slot is asked again at the price of one; without, it stays lost."""
    arguments = of_the_default(tmp_path, spare)
    for fail_at in ("noise@4", "store@3"):
        assert commands.run(arguments, fail_at).returncode == KILLED
    done = commands.run(arguments)
    assert done.returncode == 0, done.stderr
    charges, released = check_ledger(tmp_path / "model.hedge.ledger")
    assert charges - released == 2
    assert len(Ensemble.load(tmp_path / "model.hedge").trees) > 2


def run_with_disk(arguments: list[str], limit: int) -> subprocess.CompletedProcess[str]:
    """Run with files limited to so many bytes: writing beyond fails as on a full disk."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        arguments, cwd=ROOT, capture_output=True, text=True, preexec_fn=limited, timeout=800
    )


@pytest.mark.parametrize("limit", [0, 5000])
def test_a_full_disk_fails_before_the_first_charge(tmp_path: Path, limit: int) -> None:
    failed = run_with_disk(command(tmp_path, "model.hedge", spare=0), limit)
    assert failed.returncode == 2, failed.stderr
    assert "Traceback" not in failed.stderr
    assert ("cannot write" if limit == 0 else "cannot open the ledger") in failed.stderr
    assert not (tmp_path / "model.hedge").exists()


def test_a_disk_that_fills_up_on_the_way_stops_the_run_and_it_resumes(
    commands: Commands, tmp_path: Path, whole: Ensemble
) -> None:
    arguments = command(tmp_path, "model.hedge", spare=10)
    failed = run_with_disk(arguments, 60_000)
    assert failed.returncode == 5, failed.stderr
    assert "Free some disk space" in failed.stderr
    charges, released = check_ledger(tmp_path / "model.hedge.ledger")
    assert 0 < released <= charges
    done = commands.run(arguments)
    assert done.returncode == 0, done.stderr
    check_ledger(tmp_path / "model.hedge.ledger")
    assert Ensemble.load(tmp_path / "model.hedge") == whole
