"""Python over a real federation: every estimator, an interrupted fit, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow import (
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    SimilarityBoostingClassifier,
    VerticalBoostingClassifier,
    open_federation,
)
from hedgerow.coordinator.gate import Progress
from hedgerow.deployment.runs import list_runs
from hedgerow.deployment.trial import Sites
from hedgerow.engines.site import Site
from hedgerow.errors import LedgerError, Refused, SchemaError, SettingsError, SumFailed
from hedgerow.privacy.ledger.ledger import Ledger
from tests.test_documents import ROOT

EXAMPLE = ROOT / "examples" / "python_over_sites"
BANKS = ("east", "harbour", "north")
SMALL = {"method": "random-trees", "n_trees": 6, "max_depth": 2, "epsilon": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, str(EXAMPLE / "make_tables.py"), str(made)], check=True)
    return made


@pytest.fixture(scope="module")
def sites(folder: Path) -> Iterator[Sites]:
    tables = {name: folder / f"{name}.csv" for name in BANKS}
    schema, limits = folder / "schema.toml", folder / "limits.toml"
    with Sites.make(folder, tables, schema, limits=limits, further=("--id", "customer")) as made:
        yield made


def lines_of(site: Site, kind: str, run: str = "") -> list[tuple[int, int]]:
    with Ledger.open(site.ledger_path, create=False) as ledger:
        return [(x.slot, x.attempt) for x in ledger.lines("coordinator", kind, run or None)]


def test_fifteen_lines_train_every_kind_of_model(sites: Sites, folder: Path) -> None:
    assert len((EXAMPLE / "train.py").read_text().splitlines()) <= 15
    site = sites.by_name["coordinator"]
    before = {run.run for run in list_runs(site)}  # of other tests, which share the sites
    command = [
        sys.executable,
        str(EXAMPLE / "train.py"),
        str(site.path),
        str(folder / "schema.toml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "epsilon = 1, delta = 1e-06" in words
    assert "pure epsilon = 0.5" in words
    assert "NOT PRIVATE. It was trained without differential privacy: parties saw hashes" in words
    assert "(protection paillier)" in words
    with Ledger.open(site.ledger_path, create=False) as ledger:
        roles = [x.values["agreement"]["program"] for x in ledger.lines(kind="disclose")]
        runs = [run for run in list_runs(site) if run.run not in before]
        for run in runs:  # the site's own ledger paid
            assert len(ledger.lines("coordinator", "reserve", run.run)) == 1
    assert roles == ["simfl", "fedxgboost-paillier-merged"]
    assert [run.method for run in runs] == ["auto", "private-tree"]
    assert not list((site.path / "fits").iterdir())


def test_an_interrupted_fit_is_gone_on_with_and_nothing_is_paid_twice(
    sites: Sites, folder: Path
) -> None:
    site = sites.by_name["coordinator"]

    def interrupt(progress: Progress) -> None:
        if progress.slot == 2:
            os.kill(os.getpid(), signal.SIGINT)  # what Ctrl-C does

    handler = signal.getsignal(signal.SIGINT)
    with open_federation(site.path, folder / "schema.toml") as federation:
        model = PrivateBoostingClassifier(**SMALL)
        with pytest.raises(KeyboardInterrupt, match=r"before slot 4.*nothing is paid twice"):
            model.fit_federation(federation, observe=interrupt)
    assert signal.getsignal(signal.SIGINT) is handler
    stopped = list_runs(site)[-1]
    assert stopped.state == "stopped"
    assert lines_of(site, "charge", stopped.run) == lines_of(site, "release", stopped.run)
    assert len(lines_of(site, "release", stopped.run)) == 3
    replayed: list[bool] = []
    with open_federation(site.path, folder / "schema.toml") as federation:
        PrivateBoostingClassifier(**SMALL, random_state=5).fit_federation(federation)
        assert list_runs(site)[-1].run != stopped.run  # it asks for a seed of its own
        model.fit_federation(federation, observe=lambda p: replayed.append(p.replayed))
    assert model.plan_.run == stopped.run
    assert replayed[:3] == [True] * 3
    assert not any(replayed[3:])
    charged = Counter(slot for slot, _ in lines_of(site, "charge", stopped.run))
    assert set(charged.values()) == {1}
    assert {r.run: r.state for r in list_runs(site)}[stopped.run] == "finished"
    with open_federation(site.path, folder / "schema.toml") as federation:
        assert model.fit_federation(federation).plan_.run != stopped.run


def test_a_fit_that_is_not_to_be_gone_on_with_is_forgotten(sites: Sites, folder: Path) -> None:
    site = sites.by_name["coordinator"]

    def fail(progress: Progress) -> None:
        raise ConnectionError("the network is gone")

    with open_federation(site.path, folder / "schema.toml") as federation:
        with pytest.raises(ConnectionError):
            PrivateBoostingClassifier(**SMALL).fit_federation(federation, observe=fail)
        (waiting,) = (site.path / "fits").iterdir()
    with open_federation(site.path, folder / "schema.toml", resume=False) as federation:
        model = PrivateBoostingClassifier(**SMALL).fit_federation(federation)
    assert model.plan_.run != waiting.stem
    assert not waiting.exists()


def test_what_parties_do_not_allow_is_refused_and_costs_nothing(sites: Sites, folder: Path) -> None:
    site = sites.by_name["coordinator"]
    with open_federation(site.path, folder / "schema.toml") as federation:
        before = federation.ledger and len(federation.ledger.lines("coordinator", "reserve"))
        with pytest.raises(Refused, match="over-limits"):
            PrivateBoostingClassifier(epsilon=1.5).fit_federation(federation)
        with pytest.raises(Refused, match="not-allowed"):
            VerticalBoostingClassifier(protection="none", n_trees=1).fit_federation(
                federation, {"spent": "east"}, "north"
            )
        with pytest.raises(SettingsError, match=r"'shop' is no party .* east, harbour, north"):
            VerticalBoostingClassifier().fit_federation(federation, {"spent": "shop"}, "north")
        with pytest.raises(SchemaError, match="label has classes; use PrivateBoostingClassifier"):
            PrivateBoostingRegressor().fit_federation(federation)
        with pytest.raises(SchemaError, match="not that of the federation"):
            SimilarityBoostingClassifier(
                bounds={"income": (0, 1)}, classes=["no", "yes"]
            ).fit_federation(federation)
        with pytest.raises(LedgerError, match="in use by another process"):
            open_federation(site.path, folder / "schema.toml")
        assert federation.ledger is not None
        assert len(federation.ledger.lines("coordinator", "reserve")) == before
        assert not list((site.path / "fits").iterdir())


def test_parties_that_are_left_out_are_missed_before_anything_is_charged(
    sites: Sites, folder: Path
) -> None:
    site, schema = sites.by_name["coordinator"], folder / "schema.toml"
    with pytest.raises(SettingsError, match="without names 'west'"):
        open_federation(site.path, schema, without=["west"])
    with pytest.raises(SumFailed, match=r"none of the parties east, harbour, north is connected"):
        open_federation(site.path, schema, without=BANKS)
    with open_federation(site.path, schema, without=["east"]) as federation:
        with pytest.raises(SumFailed, match="2 of 3 parties are there and a sum needs 3"):
            PrivateBoostingClassifier(**SMALL).fit_federation(federation)
        assert not list((site.path / "fits").iterdir())
