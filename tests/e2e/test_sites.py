"""A real federation in separate processes over TLS: kills, silence, ledgers that agree."""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hedgerow.audit import Verification, verify_model, write_manifest
from hedgerow.data.schema import Schema
from hedgerow.deployment.limits_file import default_limits_text
from hedgerow.deployment.service import ask_party
from hedgerow.deployment.trial import Sites, hedgerow
from hedgerow.engines.site import Site
from hedgerow.errors import VerificationFailed
from hedgerow.model.ensemble import Ensemble
from hedgerow.party.limits import Limits
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from tests.slow import slow

SCHEMA = Schema.from_bounds({"age": (0, 100), "dose": (0, 1), "pulse": (30, 200)}, classes=[0, 1])
ROWS = 7_500  # of each party
NAMES = ("hospital-a", "hospital-b", "hospital-c", "hospital-d")


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    made = {
        "age": rng.uniform(0, 100, ROWS),
        "dose": rng.uniform(0, 1, ROWS),
        "pulse": rng.uniform(30, 200, ROWS),
    }
    odds = made["age"] / 20 - 2.5 + 2 * (made["dose"] > 0.6)
    return pa.table({**made, "label": (rng.random(ROWS) < 1 / (1 + np.exp(-odds))).astype(int)})


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    SCHEMA.write(folder / "schema.toml")
    tables = {}
    for seed, name in enumerate(NAMES):
        tables[name] = folder / f"{name}.parquet"
        parquet.write_table(table(seed), tables[name])
    limits = folder / "limits.toml"
    limits.write_text(default_limits_text().replace("# roles = ", "roles = "))
    with Sites.make(folder, tables, folder / "schema.toml", limits=limits) as made:
        yield made


class Training:
    """`hedgerow train` over the sites, as a process of its own."""

    def __init__(self, sites: Sites, folder: Path, *words: str) -> None:
        self.out = folder / "model.hedge"
        site = sites.by_name["coordinator"]
        schema = next(iter(sites.by_name.values())).path.parent.parent / "schema.toml"
        self._words = (
            *("train", "--site", str(site.path), "--schema", str(schema)),
            *("--out", str(self.out), "--epsilon", "1", "--delta", "1e-6", "--json", *words),
        )
        self.site = site

    def start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(hedgerow(self._words), stdout=pipe, stderr=pipe, text=True)

    def run(self) -> tuple[int, dict[str, Any], str]:
        return self.end(self.start())

    @staticmethod
    def end(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any], str]:
        out, words = process.communicate(timeout=800)
        return process.returncode, json.loads(out) if process.returncode == 0 else {}, words


def books(site: Site) -> list[tuple[str, int, int]]:
    """(run, slot, attempt) of every charge at a site's ledger, while its process runs or not."""
    lines = ask_party(site, Limits(), "log")
    return [(e["run"], e["slot"], e["attempt"]) for e in lines if e["what"] == "charged"]


def coordinator_books(site: Site) -> tuple[set[tuple[str, int, int]], set[tuple[str, int, int]]]:
    """What the coordinator charged and what it released."""
    with Ledger.open(site.ledger_path, create=False) as ledger:
        verify(ledger)
        key = ("run", "slot", "attempt")
        charged = {tuple(getattr(x, k) for k in key) for x in ledger.lines(kind="charge")}
        released = {tuple(getattr(x, k) for k in key) for x in ledger.lines(kind="release")}
    return charged, released  # type: ignore[return-value]


def check_agreement(sites: Sites) -> None:
    """Every release was charged by the coordinator and by at least three parties, once each."""
    charged, released = coordinator_books(sites.by_name["coordinator"])
    assert released
    assert released <= charged
    parties = {name: books(sites.by_name[name]) for name in NAMES}
    for name, found in parties.items():
        assert len(found) == len(set(found)), f"{name} charged an attempt twice"
        assert set(found) <= charged, f"{name} answered what the coordinator never charged"
    for line in released:
        assert sum(line in found for found in parties.values()) >= 3


@slow
def test_sites_hold_a_session_as_parties_of_one_process_do(sites: Sites, tmp_path: Path) -> None:
    """Similarity, over TLS and in one process: the same messages, the same model."""
    site = sites.by_name["coordinator"]
    folder = site.path.parent.parent
    common = ["--schema", str(folder / "schema.toml"), "--trees", "2", "--depth", "2"]
    common += ["--seed", "5", "--json"]
    tables = [word for n in NAMES for word in ("--data", f"{n}={folder / n}.parquet")]
    apart, here = str(tmp_path / "apart.hedge"), str(tmp_path / "here.hedge")
    engine = ["--site", str(site.path), "--out", apart]
    for words in ([*engine, *common], [*tables, "--out", here, *common]):
        subprocess.run(hedgerow(["similarity", *words]), check=True, stdout=subprocess.PIPE)
    model = Ensemble.load(Path(apart))
    assert model.trees == Ensemble.load(Path(here)).trees
    assert len(model.trees) == 2
    assert (model.statement.guarantee, model.statement.simulated) == ("none", False)
    with Ledger.open(site.ledger_path, create=False) as ledger:
        (line,) = ledger.lines(kind="disclose")
        verify(ledger)
    assert line.values["agreement"]["program"] == "simfl"


@slow
def test_a_site_that_adds_rows_goes_on_from_what_all_have_kept(
    sites: Sites, tmp_path: Path
) -> None:
    """Hashes of added rows travel alone, and the model is that of tables on one machine."""
    site = sites.by_name["coordinator"]
    folder = site.path.parent.parent
    common = ["--schema", str(folder / "schema.toml"), "--trees", "2", "--depth", "2", "--json"]
    tables = [word for n in NAMES for word in ("--data", f"{n}={folder / n}.parquet")]
    here = [*tables, "--store", str(tmp_path / "store"), "--ledger", str(tmp_path / "ledger")]
    engines = {"apart": ["--site", str(site.path)], "here": here}

    def run(name: str, *words: str) -> dict[str, Any]:
        out = ["--out", str(tmp_path / f"{name}.hedge")]
        command = ["similarity", *engines[name], *out, *common, *words]
        found: dict[str, Any] = json.loads(subprocess.check_output(hedgerow(command)))
        return found

    before = {name: run(name, "--seed", "5", "--keep") for name in engines}
    stop(sites, "hospital-b")
    longer = pa.concat_tables([table(1), table(7).slice(0, 300)])
    parquet.write_table(longer, folder / "hospital-b.parquet")
    sites.start("hospital-b")
    sites.wait_for("hospital-b")
    after = {name: run(name, "--continues", before[name]["run"]) for name in engines}
    models = {name: Ensemble.load(tmp_path / f"{name}.hedge") for name in engines}
    assert models["apart"].trees == models["here"].trees
    assert models["apart"].record["seed"] == 5  # as the ledger has it
    assert after["apart"]["bytes_from_parties"] < 0.7 * before["apart"]["bytes_from_parties"]


def test_four_sites_train_one_model_and_their_ledgers_agree(sites: Sites, tmp_path: Path) -> None:
    code, facts, words = Training(sites, tmp_path).run()
    assert code == 0, words
    model = Ensemble.load(tmp_path / "model.hedge")
    statement = model.statement
    assert statement.guarantee == "epsilon-delta"
    assert (statement.epsilon, statement.trust, statement.simulated) == (1.0, "parties", False)
    assert statement.parties == NAMES
    assert "Trust is simulated" not in statement.words()
    assert facts["rounds"] <= 16
    check_agreement(sites)
    run = model.record["run"]  # other tests may have left runs of theirs before this one
    charged = {b for b in coordinator_books(sites.by_name["coordinator"])[0] if b[0] == run}
    assert charged
    for name in NAMES:  # nobody was lost, so everyone paid for everything
        assert {b for b in books(sites.by_name[name]) if b[0] == run} == charged
    fresh = table(99)
    inputs = fresh.drop(["label"])
    shares = model.predict(inputs)
    assert np.all((shares > 0) & (shares < 1))
    assert np.ptp(shares[:, 1]) > 0  # noise is real here, so what it leaves of the model is luck
    listed = json.loads(
        subprocess.check_output(
            hedgerow(["runs", str(sites.by_name["coordinator"].path), "--json"])
        )
    )
    assert [entry["state"] for entry in listed if entry["run"] == run] == ["finished"]
    check_evaluation(sites, tmp_path / "model.hedge")
    check_verification(sites, tmp_path / "model.hedge")


def check_verification(sites: Sites, model: Path) -> None:
    """A stranger's check of the model holds, while the sites run; other bytes do not."""
    ledgers = [word for site in sites.by_name.values() for word in ("--ledger", site.ledger_path)]
    command = hedgerow(["verify", str(model), *map(str, ledgers), "--json"])
    found = json.loads(subprocess.check_output(command, timeout=200))
    assert found["complete"]
    words = {finding["check"]: finding["words"] for finding in found["findings"]}
    assert {"ledgers", "plan", "model", "charges", "sums", "witnesses"} <= {*words}
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    other = model.with_name("other.hedge")
    other.write_bytes(content)
    command[command.index(str(model))] = str(other)
    failed = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert failed.returncode == 1
    assert "other.hedge" in failed.stderr
    check_any_byte(sites, model)


def check_any_byte(sites: Sites, model: Path) -> None:
    """Of what was handed over, whichever byte of whichever file is changed, that file is named."""
    folder = model.with_name("handed-over")
    folder.mkdir()
    files = [Path(shutil.copy(model, folder))]
    for name, site in sites.by_name.items():
        files.append(folder / f"{name}.ledger")
        with sqlite3.connect(site.ledger_path) as live, sqlite3.connect(files[-1]) as copy:
            live.backup(copy)
    schema, plan, made = folder / "schema.toml", folder / "plan.toml", Ensemble.load(model)
    made.schema.write(schema)
    with Ledger.open(folder / "coordinator.ledger", create=False) as ledger:
        (reserved,) = ledger.lines("coordinator", "reserve", made.record["run"])
        Plan.from_dict(reserved.values["plan"]).write(plan)
    noted, rng = folder / "manifest.json", random.Random(5)
    write_manifest(noted, [*files, schema, plan])

    def verified() -> Verification:
        return verify_model(files[0], files[1:], schema, plan, manifest=noted)

    assert verified().complete
    for file in (*files, schema, plan):
        content = file.read_bytes()
        for place in (0, len(content) - 1, *(rng.randrange(len(content)) for _ in range(20))):
            changed = bytearray(content)
            changed[place] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            with pytest.raises(VerificationFailed, match=f"{re.escape(file.name)} is not the file"):
                verified()
        file.write_bytes(content)


def check_evaluation(sites: Sites, model: Path) -> None:
    """Every party pays for a private evaluation of the model; the same command again is free."""
    site = sites.by_name["coordinator"]
    command = hedgerow(
        ["evaluate", str(model), "--site", str(site.path), "--epsilon", "0.5", "--json"]
    )
    found = json.loads(subprocess.check_output(command, timeout=200))
    assert found["private"]
    assert found["releases_asked"] > 0
    paid = {name: [b for b in books(sites.by_name[name]) if b[0] == found["run"]] for name in NAMES}
    assert {len(lines) for lines in paid.values()} == {found["releases_asked"]}
    check_agreement(sites)
    before = {name: books(sites.by_name[name]) for name in NAMES}
    again = json.loads(subprocess.check_output(command, timeout=200))
    assert again["releases_asked"] == 0
    assert again["measures"] == found["measures"]
    assert {name: books(sites.by_name[name]) for name in NAMES} == before


def test_a_party_with_a_full_disk_is_named_at_the_coordinator(sites: Sites, tmp_path: Path) -> None:
    """In the output, in `coordinator status` while the run lasts, and in the model's record."""
    words = ("--spare", "4", "--method", "random-trees", "--trees", "120")
    process = Training(sites, tmp_path, *words).start()
    wait_for_progress(sites, process)
    party = sites.processes["hospital-b"].pid
    resource.prlimit(party, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    status = hedgerow(["coordinator", "status", str(sites.by_name["coordinator"].path), "--json"])
    why, seen = "cannot write its ledger, most likely because its disk is full", ""
    try:
        while why not in seen and process.poll() is None:
            found = subprocess.run(status, stdout=subprocess.PIPE, text=True, timeout=60)
            named = {p["name"]: p["problems"] for p in json.loads(found.stdout)["parties"]}
            seen = "; ".join(named["hospital-b"])
    finally:
        resource.prlimit(party, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    code, facts, said = Training.end(process)
    assert code == 0, said
    assert why in seen
    assert found.returncode == 5
    assert why in said
    (loss,) = facts["attendance"]["lost"]
    assert loss["party"] == "hospital-b"
    assert why in loss["why"]
    record = Ensemble.load(tmp_path / "model.hedge").record
    assert record["attendance"] == facts["attendance"]
    check_agreement(sites)


def test_kills_in_a_running_federation_cost_no_release_and_no_book(
    sites: Sites, tmp_path: Path
) -> None:
    """A party and the coordinator's port are killed in the middle; both are started again."""
    training = Training(
        sites, tmp_path, "--spare", "4", "--method", "random-trees", "--trees", "40"
    )
    process = training.start()
    for name in ("hospital-c", "coordinator"):
        wait_for_progress(sites, process)
        sites.processes[name].kill()
        sites.start(name)
    code, _, words = training.end(process)
    while code == 5:  # stopped and can be resumed
        for name in NAMES:
            sites.wait_for(name)
        code, _, words = training.run()
    assert code == 0, words
    assert Ensemble.load(training.out).statement.guarantee == "epsilon-delta"
    check_agreement(sites)


def wait_for_progress(sites: Sites, process: subprocess.Popen[str]) -> None:
    """Until the party that is never killed here has answered something more."""
    site = sites.by_name["hospital-a"]
    before, deadline = len(books(site)), time.monotonic() + 300
    while len(books(site)) <= before and process.poll() is None:
        assert time.monotonic() < deadline, "no progress within five minutes"
        time.sleep(0.1)


@slow
def test_two_parties_lost_stop_a_run_and_one_of_them_back_lets_it_go_on(
    sites: Sites, tmp_path: Path
) -> None:
    training = Training(sites, tmp_path, "--timeout-seconds", "20")
    stop(sites, "hospital-c")
    stop(sites, "hospital-d")
    before = {name: books(sites.by_name[name]) for name in NAMES}
    code, _, words = training.run()
    assert code == 5, words
    assert "only 2 of 4 parties are there and a sum needs 3" in words
    assert {name: books(sites.by_name[name]) for name in NAMES} == before
    sites.start("hospital-c")
    sites.wait_for("hospital-c")
    code, facts, words = training.run()  # hospital-d is lost for good
    assert code == 0, words
    paid = {n for n in NAMES if [b for b in books(sites.by_name[n]) if b[0] == facts["run"]]}
    assert paid == {"hospital-a", "hospital-b", "hospital-c"}
    check_agreement(sites)


def stop(sites: Sites, name: str) -> None:
    sites.processes[name].send_signal(signal.SIGTERM)
    assert sites.processes[name].wait(300) == 0
