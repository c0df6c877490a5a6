"""A stranger's check of a model: it holds for what was made, and names whatever was changed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.audit.verification import verify_model, write_manifest
from hedgerow.coordinator.gate import Gate
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.engines.local import local_federation
from hedgerow.errors import VerificationFailed
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.packing import pack, unpack
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.line import GENESIS, line_hash
from hedgerow.privacy.settings import Privacy
from tests.conftest import MIXED, mixed_table

NAMES = ("north", "south", "west")
FILES = ("model.hedge", "book.ledger", "schema.toml", "plan.toml")


def made(folder: Path, method: str = "random-trees", trust: str = "parties") -> None:
    """A run over three parties of one process, whose ledgers are one file; and its documents."""
    delta = 0.0 if method == "private-tree" else 1e-6
    accounting = "pure" if method == "private-tree" else "exact"
    settings = {"n_trees": 3, "max_depth": 2} if method == "random-trees" else {}
    privacy = Privacy(1.0, delta, trust, accounting=accounting)
    plan = plan_for(MIXED, privacy, method, settings=settings, seed=3)
    tables = {name: rows_of(mixed_table(80, seed), MIXED) for seed, name in enumerate(NAMES)}
    with Ledger.open(folder / "book.ledger") as ledger:
        federation = local_federation(tables, MIXED, ledger, trust=trust)
        METHODS[plan.method].grow(Gate(federation, plan, ledger)).save(folder / "model.hedge")
    MIXED.write(folder / "schema.toml")
    plan.write(folder / "plan.toml")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    made(folder)
    write_manifest(folder / "manifest.json", [folder / name for name in FILES])
    return folder


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def verified(folder: Path, manifest: bool = False) -> dict[str, str]:
    noted = folder / "manifest.json" if manifest else None
    model, ledger, schema, plan = (folder / name for name in FILES)
    found = verify_model(model, [ledger], schema, plan, manifest=noted)
    assert found.complete
    return {finding.check: finding.words for finding in found.findings}


def test_a_model_that_was_not_touched_holds(copy: Path) -> None:
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    words = verified(copy, manifest=True)
    assert "4 of 4 releases are the sum" in words["sums"]
    assert "3 of 3 parties reserved this plan and charged 12 answers" in words["charges"]
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


@pytest.mark.parametrize(
    ("method", "trust"),
    [("auto", "parties"), ("random-trees", "coordinator"), ("random-trees", "nobody"),
     ("private-tree", "parties")],
)  # fmt: skip
def test_every_trust_and_kind_of_budget_can_be_verified(
    tmp_path: Path, method: str, trust: str
) -> None:
    made(tmp_path, method, trust)
    words = verified(tmp_path)
    assert ("sums" in words) == (trust != "coordinator")  # exact sums are kept by nobody


@pytest.mark.parametrize("name", FILES)
def test_any_byte_that_changed_is_seen_and_its_file_named(copy: Path, name: str) -> None:
    rng, path = random.Random(name), copy / name
    content = path.read_bytes()
    for place in [0, len(content) - 1, *(rng.randrange(len(content)) for _ in range(30))]:
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(VerificationFailed, match=name):
            verified(copy, manifest=True)


def forge(folder: Path, statement: str, *values: object) -> None:
    """Change a ledger as somebody would who has the file, hash chain and all."""
    database = sqlite3.connect(folder / "book.ledger")
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        database.execute(f"DROP TRIGGER {trigger}")
    database.execute(statement, values)
    database.commit()
    database.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM line WHERE seq = (SELECT MAX(seq) FROM line)",
        "DELETE FROM line WHERE kind = 'charge' AND owner = 'south'",
        "UPDATE line SET slot = slot + 9 WHERE kind = 'release'",
        "UPDATE line SET owner = 'east' WHERE owner = 'north'",
    ],
)
def test_a_forged_line_is_found_without_a_manifest(copy: Path, statement: str) -> None:
    forge(copy, statement)
    with pytest.raises(VerificationFailed, match=r"book\.ledger"):
        verified(copy)


Values, Arrays = dict[str, Any], dict[str, Any]
Edit = Callable[[str, str, Values, Arrays], tuple[Values, Arrays] | None]


def rewrite(folder: Path, edit: Edit) -> None:
    """Write a ledger anew with other lines, each hashed as if it had always been so."""
    database = sqlite3.connect(folder / "book.ledger")
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        database.execute(f"DROP TRIGGER {trigger}")
    columns = "seq, time, owner, kind, run, slot, attempt, body"
    lines = database.execute(f"SELECT {columns} FROM line ORDER BY seq").fetchall()
    database.execute("DELETE FROM line")
    previous = GENESIS
    for place, (_, *about, body) in enumerate(lines, start=1):
        changed = edit(about[1], about[2], *unpack(body))
        body = body if changed is None else pack(*changed)
        hashed = line_hash(place, *about, body, previous)
        database.execute(
            f"INSERT INTO line ({columns}, previous, hash) VALUES (?,?,?,?,?,?,?,?,?,?)",
            (place, *about, body, previous, hashed),
        )
        previous = hashed
    database.commit()
    database.close()


def of_lines(owner: str, kind: str, **changes: Any) -> Edit:
    def edit(of: str, what: str, values: Values, arrays: Arrays) -> tuple[Values, Arrays] | None:
        asked = owner in (of, "anybody") and what == kind
        return ({**values, **changes}, arrays) if asked else None

    return edit


FORGED = {
    "no receipts": (of_lines("coordinator", "release", receipts={}), "lacks the receipt"),
    "a party absent": (
        of_lines("coordinator", "release", absent=["south"]), "fewer than 3"),
    "nobody named": (of_lines("coordinator", "release", absent=None), "which of the parties"),
    "a stranger absent": (of_lines("coordinator", "release", absent=["x"]), "which of the part"),
    "parties left out": (of_lines("coordinator", "reserve", parties=["north"]), "states parties"),
    "no parties": (of_lines("coordinator", "reserve", parties=[]), "does not say who took part"),
    "another delta": (of_lines("north", "reserve", delta=0.0), "reserves another delta"),
    "fewer coordinates": (of_lines("anybody", "reserve", coordinates=0), "another coordinates"),
    "another unit": (of_lines("anybody", "reserve", unit="one party"), "reserves another unit"),
    "a smaller mu": (of_lines("south", "reserve", mu=0.01), "reserves another mu"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_ledger_that_was_written_anew_does_not_hold(copy: Path, name: str) -> None:
    edit, words = FORGED[name]
    rewrite(copy, edit)
    with pytest.raises(VerificationFailed, match=words):
        verified(copy)


@pytest.mark.parametrize("trust", ["coordinator", "parties", "nobody"])
def test_a_party_that_charged_nothing_is_found(tmp_path: Path, trust: str) -> None:
    made(tmp_path, trust=trust)
    database = sqlite3.connect(tmp_path / "book.ledger")
    for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
        database.execute(f"DROP TRIGGER {trigger}")
    kinds = "('charge', 'answer')"
    database.execute(f"DELETE FROM line WHERE owner = 'south' AND kind IN {kinds}")
    database.commit()
    database.close()
    rewrite(tmp_path, lambda *_: None)  # the chain as if these lines had never been
    with pytest.raises(VerificationFailed, match=r"south\): it has not charged slot 0"):
        verified(tmp_path)


def changed_model(change: Callable[[Ensemble], Ensemble]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        change(Ensemble.load(folder / "model.hedge")).save(folder / "model.hedge")

    return apply


def other_leaf(model: Ensemble) -> Ensemble:
    first = model.trees[-1]
    values = first.values.copy()
    values[0] += np.float32(0.001)
    return replace(model, trees=(*model.trees[:-1], replace(first, values=values)))


def other_cover(model: Ensemble) -> Ensemble:
    last = model.trees[-1]
    cover = np.full(len(last.values), 7, np.float32)
    return replace(model, trees=(*model.trees[:-1], replace(last, cover=cover)))


CHANGES = {
    "a leaf": (changed_model(other_leaf), "not what the releases on the ledger make"),
    "epsilon": (
        changed_model(lambda m: replace(m, statement=replace(m.statement, epsilon=0.5))),
        "states epsilon = 0.5",
    ),
    "trust": (
        changed_model(lambda m: replace(m, statement=replace(m.statement, colluding=2))),
        "states colluding = 2",
    ),
    "simulated": (
        changed_model(lambda m: replace(m, statement=replace(m.statement, simulated=False))),
        "states simulated = False",
    ),
    "a party struck out": (
        changed_model(lambda m: replace(m, statement=replace(m.statement, parties=NAMES[:2]))),
        "states parties",
    ),
    "covers": (changed_model(other_cover), "another cover of leaves"),
    "settings in the record": (
        changed_model(lambda m: replace(m, record={**m.record, "asked": []})),
        "another 'asked' in its record",
    ),
    "run": (
        changed_model(lambda m: replace(m, record={**m.record, "run": "another"})),
        "it has no run 'another'",
    ),
    "plan": (
        changed_model(lambda m: replace(m, record={**m.record, "plan": "0" * 64})),
        "names another plan",
    ),
    "method": (
        changed_model(lambda m: replace(m, record={**m.record, "method": "simfl"})),
        "was not made of releases",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_that_was_written_anew_does_not_hold(copy: Path, name: str) -> None:
    change, words = CHANGES[name]
    change(copy)
    with pytest.raises(VerificationFailed, match=words):
        verified(copy)


def test_other_documents_are_told_from_those_agreed_on(copy: Path) -> None:
    other = replace(MIXED, name="other")
    other.write(copy / "schema.toml")
    with pytest.raises(VerificationFailed, match=r"schema\.toml is another schema"):
        verified(copy)
    MIXED.write(copy / "schema.toml")
    plan_for(MIXED, Privacy(1.0, 1e-6, "parties"), "random-trees").write(copy / "plan.toml")
    with pytest.raises(VerificationFailed, match=r"plan\.toml is another plan"):
        verified(copy)


def split(folder: Path) -> list[Path]:
    """Runs of two federations with one ledger for each party, as sites have them."""
    plan = plan_for(MIXED, Privacy(1.0, 1e-6, "parties"), "random-trees", settings={"n_trees": 2})
    tables = {name: rows_of(mixed_table(80, seed), MIXED) for seed, name in enumerate(NAMES)}
    with Ledger.open(folder / "whole.ledger") as ledger:
        federation = local_federation(tables, MIXED, ledger)
        METHODS[plan.method].grow(Gate(federation, plan, ledger)).save(folder / "model.hedge")
        lines = list(ledger.walk())
    files = []
    for owner in ("coordinator", *NAMES):
        files.append(folder / f"{owner}.ledger")
        with Ledger.open(files[-1]) as own:
            for line in lines:
                if line.owner == owner:
                    own.append(
                        owner,
                        line.kind,
                        line.run,
                        line.slot,
                        line.attempt,
                        line.values,
                        line.arrays,
                    )
    return files


def test_ledgers_of_sites_are_put_side_by_side(tmp_path: Path) -> None:
    files = split(tmp_path)
    model = tmp_path / "model.hedge"
    assert verify_model(model, files).complete
    part = verify_model(model, files[:-1])
    assert (part.complete, part.missing) == (False, ("west",))
    assert "sums" not in {finding.check for finding in part.findings}
    with pytest.raises(VerificationFailed, match="none of the ledgers is a coordinator's"):
        verify_model(model, files[1:])
    with pytest.raises(VerificationFailed, match="both have lines of"):
        verify_model(model, [*files, tmp_path / "whole.ledger"])


def test_an_answer_that_differs_from_the_release_is_found(tmp_path: Path) -> None:
    files = split(tmp_path)
    with Ledger.open(files[1], create=False) as old:
        lines = list(old.walk())
    files[1].unlink()
    with Ledger.open(files[1]) as own:  # a whole chain, whose one answer is another
        for line in lines:
            arrays = dict(line.arrays)
            if line.kind == "answer" and line.slot == 1:
                arrays["body"] = arrays["body"].copy()
                arrays["body"][-20] ^= 1
            own.append("north", line.kind, line.run, line.slot, line.attempt, line.values, arrays)
    with pytest.raises(VerificationFailed, match=r"slot 1, attempt 1 of run .* is not the sum"):
        verify_model(tmp_path / "model.hedge", files)


def test_files_that_are_not_there_or_not_readable_are_named(copy: Path, tmp_path: Path) -> None:
    for name in ("book.ledger", "model.hedge"):
        (copy / name).unlink()
        with pytest.raises(VerificationFailed, match=name):
            verified(copy)
    with pytest.raises(VerificationFailed, match="same name"):
        write_manifest(tmp_path / "m.json", [copy / "plan.toml", copy / "plan.toml"])
    (copy / "manifest.json").write_text("[]")
    with pytest.raises(VerificationFailed, match="cannot be read as a manifest"):
        verified(copy, manifest=True)
    assert isinstance(Schema.read(copy / "schema.toml"), Schema)
