"""What people declare and agree on: plans, schemas, rosters, key cards, limits."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedgerow.data.csv_format import CsvFormat
from hedgerow.deployment.limits_file import default_limits_text, in_force, limits_in_words
from hedgerow.deployment.roster import roster_fingerprint
from hedgerow.engines.site import Site, roster_text
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Identity, Roster, fingerprint
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.tables import PARTIES, PERSONS, PLAIN, SCHEMAS
from tests.golden.text import Files, as_json
from tests.golden.trained import measured


def plans() -> Files:
    """A plan of every method, and one with more parties, spares and Renyi accounting."""
    found = {f"{method}.{task}": runs.plan_of(method, task) for method, task in runs.CASES}
    renyi = Privacy(1.0, 1e-6, "parties", accounting="renyi", colluding=2, spare=2)
    found["spares"] = runs.plan_for(PERSONS, renyi, "dp-gbm", {"n_trees": 4}, 9, "spares")
    exact = Privacy(2.0, 1e-6, "coordinator", accounting="exact")
    sampled = {"sample_rate": 0.25, "n_trees": 3}
    found["sampled"] = runs.plan_for(SCHEMAS["binary"], exact, "dp-xgboost", sampled, 9, "sampled")
    for task in SCHEMAS:
        plan = measured(task).plan
        assert plan is not None
        found[f"evaluation.{task}"] = plan
    files = {f"{name}.toml": _written(plan) for name, plan in found.items()}
    return {**files, "hashes.json": as_json({name: plan.hash for name, plan in found.items()})}


def _written(document: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        document.write(path)
        return path.read_bytes()


def schemas() -> Files:
    drafted = replace(PLAIN, drafted=True, csv=CsvFormat(";", ",", ".", "cp1252"))
    found = {**SCHEMAS, "persons": PERSONS, "plain": PLAIN, "drafted": drafted}
    found["confirmed"] = drafted.confirm(by="A. Meyer")
    files = {f"{name}.toml": _written(schema) for name, schema in found.items()}
    return {**files, "hashes.json": as_json({name: s.hash for name, s in found.items()})}


def _roster() -> Roster:
    keys = sorted((name, Identity().public) for name in PARTIES)
    return Roster(tuple(keys), Identity().public, 1, 3, "parties")


def rosters() -> Files:
    """A site's key card, the roster as a file, and what people compare by telephone."""
    with fixed("roster"), tempfile.TemporaryDirectory() as folder:
        site = Site.create(Path(folder), "hedge", "north", "coordinator.example:8002")
        card, settings = site.write_card().read_bytes(), (site.folder / "kit.toml").read_bytes()
        roster = _roster()
    facts = {
        "hash": roster.hash,
        "fingerprint": fingerprint(roster.coordinator),
        "roster fingerprint": roster_fingerprint(roster),
    }
    return {
        "kit.toml": settings,
        "north.key.toml": card,
        "roster.toml": roster_text(roster, "hedge").encode(),
        "facts.json": as_json(facts),
    }


def limits() -> Files:
    text = default_limits_text()
    found = in_force(text, "north", "limits.toml", "default")
    facts = {"hash": found.hash, "words": limits_in_words(found.limits)}
    return {"limits.toml": text.encode(), "facts.json": as_json(facts)}
