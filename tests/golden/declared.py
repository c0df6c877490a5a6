"""What people declare and agree on: plans, schemas, rosters, cards, limits; hellos of streams."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedgerow.data.csv_format import CsvFormat
from hedgerow.deployment.limits_file import default_limits_text, in_force, limits_in_words
from hedgerow.engines.cards import Card, PinnedRoster
from hedgerow.engines.grpc import hello as hellos
from hedgerow.engines.grpc.pieces import pieces_of
from hedgerow.engines.party_end import Answer, Question
from hedgerow.engines.site import Site
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Identity, Roster, fingerprint
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.tables import PARTIES, PERSONS, PLAIN, SCHEMAS
from tests.golden.text import Files, as_json, lines_of
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


# A certificate is drawn by its library; this one was made once.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBZzCCAQ2gAwIBAgIUd+O/aWBAqnb5EGgcmp0qwVrVvZswCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGZ29sZGVuMCAXDTAwMDEwMTAwMDAwMFoYDzk5OTkxMjMxMDAw
MDAwWjARMQ8wDQYDVQQDDAZnb2xkZW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATmVpcAZGOgz7iwJAvt5/u5N7/ZblODBCsUDQTwTyOwhWX/wXI2odv9abqIp8LN
OOePEUWRX6IeVjseoCaLR8BWo0EwPzAMBgNVHRMBAf8EAjAAMA4GA1UdDwEB/wQE
AwIHgDAfBgNVHREEGDAWghRjb29yZGluYXRvci5oZWRnZXJvdzAKBggqhkjOPQQD
AgNIADBFAiBJS4xeNEsq2UaiPFEuoh+riJOVIZgWw0A+Ik/VzB+0zAIhANT3nR4n
tvxOt6pBmiFSf1b/G1RCOPsGj5/TEp7qOub7
-----END CERTIFICATE-----
"""


def rosters() -> Files:
    """A site's card, the roster as a file, and what people compare by telephone."""
    with fixed("roster"), tempfile.TemporaryDirectory() as folder:
        made = Site.create(Path(folder) / "site", "coordinator", "coordinator.example:8002")
        settings, identity = (made.folder / "site.toml").read_bytes(), Identity()
        card = Card("north", identity.public, CERTIFICATE).signed(identity)
        roster = _roster()
    address, shown = "coordinator.example:8002", {"north": CERTIFICATE}
    agreed = PinnedRoster("hedge", roster, address, CERTIFICATE, shown, mutual_tls=True)
    facts = {
        "hash": roster.hash,
        "fingerprint": fingerprint(roster.coordinator),
        "whole hash": agreed.hash,
        "phrase": agreed.phrase,
        "card phrase": card.phrase,
    }
    return {
        "site.toml": settings,
        "north.card.toml": card.to_toml().encode(),
        "roster.toml": agreed.to_toml().encode(),
        "facts.json": as_json(facts),
    }


def streams() -> Files:
    """What is said at the beginning of a stream, and a message in pieces."""
    with fixed("stream"):
        party, coordinator = Identity(), Identity()
        binding = hellos.Binding(hellos.new_challenge(), "c" * 64, coordinator.public)
        hello = hellos.PartyHello(
            "north", party.public, 7, "instance", "r" * 64, hellos.new_challenge(), software="0",
            time=0.0,
        ).signed(party, binding)  # fmt: skip
        verdict = hellos.Verdict(True, "words", "r" * 64, software="0", time=0.0)
        verdict = verdict.signed(coordinator, hello, binding)
    frames = {
        "challenge": binding.challenge.encode(),
        "hello": hellos.to_frame(hello),
        "verdict": hellos.to_frame(verdict),
        "signed-by-the-party": hello.text(binding),
        "signed-by-the-coordinator": verdict.text(hello, binding),
        **{f"piece-{i}": piece for i, piece in enumerate(pieces_of(5, b"message"))},
    }
    return {"frames.txt": lines_of(list(frames.items()))}


def relays() -> Files:
    """What travels through another runtime, around a party's messages and replies."""
    frames = {
        "question": Question(b"message", 2.5).to_bytes(),
        "answer": Answer("north", b"reply").to_bytes(),
        "problem": Answer("north", problem="words").to_bytes(),
    }
    return {"frames.txt": lines_of(list(frames.items()))}


def limits() -> Files:
    text = default_limits_text()
    found = in_force(text, "north", "limits.toml", "default")
    facts = {"hash": found.hash, "words": limits_in_words(found.limits)}
    return {"limits.toml": text.encode(), "facts.json": as_json(facts)}
