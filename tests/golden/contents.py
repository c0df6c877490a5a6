"""What is stored: for every format the files that the code writes from the same values.

A maker returns the contents of its files by name. Many small messages share one text file, a line
each: their name and their bytes in base64.
"""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.deployment.limits_file import default_limits_text, in_force, limits_in_words
from hedgerow.deployment.roster import roster_fingerprint
from hedgerow.engines.site import Site, roster_text
from hedgerow.errors import HedgerowError
from hedgerow.export import FORMATS as EXPORTS
from hedgerow.methods.fedxgboost.ids import seal_ids
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.methods.simfl.kept import place_of
from hedgerow.model.ensemble import Ensemble
from hedgerow.packing import canonical_json
from hedgerow.privacy.accounting.pure import Draw
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.noise.poisson_sampling import Coins
from hedgerow.privacy.settings import Privacy
from hedgerow.protocol.identity import Announcement, Identity, Roster, digest_of, fingerprint
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.protocol.messages import REFUSALS, Message, plain
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.labels import labels
from tests.golden.tables import PARTIES, PERSONS, PLAIN, SCHEMAS, plain_table, table

Files = dict[str, bytes]
# Runs whose messages are stored whole; of all others their hashes are.
WHOLE = (("random-trees", "binary"), ("private-tree", "binary"), ("dp-xgboost", "regression"))


def lines_of(items: Iterable[tuple[str, bytes]]) -> bytes:
    """Named bytes, one a line."""
    return "".join(f"{name} {base64.b64encode(data).decode()}\n" for name, data in items).encode()


def items_in(text: bytes) -> list[tuple[str, bytes]]:
    """The inverse of `lines_of`."""
    pairs = (line.split(" ") for line in text.decode().splitlines())
    return [(name, base64.b64decode(data)) for name, data in pairs]


def as_json(values: Any) -> bytes:
    return (json.dumps(values, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode()


def _hashes(items: Iterable[tuple[str, bytes]]) -> list[str]:
    return [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in items]


@cache
def trained(method: str, task: str) -> runs.Run:
    return runs.train(method, task, forgetful=3 if (method, task) == WHOLE[0] else -1)


@cache
def measured(task: str) -> runs.Run:
    return runs.measure(model_of(trained("random-trees", task)), task)


@cache
def similar() -> runs.Run:
    return runs.similarity()


@cache
def split(protection: str) -> runs.Run:
    return runs.vertical(protection)


def model_of(run: runs.Run) -> Ensemble:
    assert run.model is not None
    return run.model


def parts_of(protection: str) -> dict[str, bytes]:
    """Each party's part of a vertical model, as it handed it over."""
    return {name: found[-1] for name, found in split(protection).reports.items()}


def models() -> Files:
    """A `.hedge` file of every method and task, of SimFL and of FedXGBoost."""
    found = {f"{method}.{task}": model_of(trained(method, task)) for method, task in runs.CASES}
    found["simfl.binary"] = model_of(similar())
    for protection in ("none", "ldp"):
        parts = parts_of(protection).values()
        found[f"vertical-{protection}.binary"] = merged([Part.from_bytes(part) for part in parts])
    return {f"{name}.hedge": model.to_bytes() for name, model in found.items()}


def parts() -> Files:
    """Each party's part of vertical models."""
    return {
        f"{protection}.{party}.part": data
        for protection in ("none", "ldp")
        for party, data in parts_of(protection).items()
    }


def meanings() -> Files:
    """What the stored models predict and say: scores as hexadecimal floats, words, hashes."""
    told: dict[str, Any] = {}
    for name, data in models().items():
        told[name] = meaning_of(data)
    return {"models.json": as_json(told)}


def meaning_of(data: bytes) -> dict[str, Any]:
    model = Ensemble.from_bytes(data)
    columns = plain_table() if model.schema == PLAIN else table()
    scores = model.decision_function({name: columns[name][::9] for name in model.schema.names})
    return {
        "hash": model.hash,
        "scores": [[float(x).hex() for x in row] for row in scores],
        "words": model.statement.words().split("\n"),
        "promise": model.statement.promise(),
    }


def statements() -> Files:
    """What models say under each trust and accounting, had their noise been drawn in earnest."""
    found = {}
    for method in ("random-trees", "ldp", "private-tree", "dp-xgboost", "auto"):
        run = trained(method, "binary")
        assert run.plan is not None
        said = replace(model_of(run).statement, guarantee=run.plan.guarantee, reason="")
        found[method] = {"values": said.to_dict(), "words": said.words().split("\n")}
    return {"statements.json": as_json(found)}


def evaluations() -> Files:
    found: Files = {}
    for task in SCHEMAS:
        evaluation = measured(task).evaluation
        assert evaluation is not None
        found[f"{task}.json"] = evaluation.to_json().encode()
    return found


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
    found = {**SCHEMAS, "persons": PERSONS, "plain": PLAIN}
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


def keys() -> Files:
    """Key derivations: the masks, seals, secrets and samples that fixed keys lead to."""
    with fixed("masks"):
        signers = {name: Identity() for name in PARTIES}
        boxes = {name: MaskKeys() for name in PARTIES}
        announced = {
            name: Announcement(name, 1, 2, boxes[name].public, "plan", "schema", "roster").signed(
                signers[name]
            )
            for name in PARTIES
        }
    context = Context("plan", "schema", 4, 1, "request", PARTIES)
    masks = {n: [int(x) for x in boxes[n].mask(n, context, announced, 5)] for n in PARTIES}
    sealed = boxes["east"].seal(boxes["west"].public, "request", "east", b"an answer")
    coins = Coins.of(b"s" * 32, ("east", "plan", "line"), Draw(3, 0.25))
    seal = seal_ids(["a", "b", "c"], b"k" * 32)
    facts = {
        "announcement": {name: one.to_dict() for name, one in announced.items()},
        "announcements": digest_of(announced),
        "masks": masks,
        "sealed": sealed.hex(),
        "secret of a party": {name: one.secret().hex() for name, one in signers.items()},
        "sample": {
            "key": coins.key.hex(),
            "rows": coins.taken(40).tolist(),
            "part": coins.part(2).taken(40).tolist(),
        },
        "ids": [seal.count, seal.ordered, seal.unordered],
        "kept similar rows": place_of("a run"),
    }
    return {"facts.json": as_json(facts)}


def messages() -> Files:
    """Whole runs as they travel: opening, joining, asks, answers, sessions of parties."""
    found = {f"{method}.{task}": trained(method, task) for method, task in WHOLE}
    found["evaluation.binary"] = measured("binary")
    found["simfl.binary"] = similar()
    found["vertical-none.binary"] = split("none")
    files = {f"{name}.txt": lines_of(run.messages) for name, run in found.items()}
    return {**files, "refusals.txt": lines_of(refused()), "words.json": as_json(sorted(REFUSALS))}


def refused() -> list[tuple[str, bytes]]:
    """What parties say to messages that they cannot follow, and to a probe."""
    run = runs.Run()
    with fixed("refusals"):
        schema = SCHEMAS["binary"]
        federation = runs.federation_of(runs.dealt(schema), schema, "parties", run)
        stranger = Identity()
        for message in (
            plain("ready", {"run": "r1"}).signed(stranger),
            Message("ask", b"no body").signed(stranger),
        ):
            federation.engine.ask(PARTIES, message.to_bytes(), 1.0)
        for type_, values in (
            ("ready", {"run": "r1"}),
            ("join", {"run": "r1", "announcements": []}),
            ("open", {"plan": {}, "roster": "", "nonce": "n"}),
            ("agree", {"agreement": {}, "roster": "", "nonce": "n"}),
            ("meet", {"run": "r1", "announcements": []}),
        ):
            federation.transport.send(dict.fromkeys(PARTIES, plain(type_, values)), type_, 1.0)
    return run.messages


def transcripts() -> Files:
    """Of every run the hashes of all its messages: too many to be stored whole."""
    found: dict[str, runs.Run] = {f"{m}.{t}": trained(m, t) for m, t in runs.CASES}
    found |= {f"evaluation.{task}": measured(task) for task in SCHEMAS}
    found |= {f"vertical-{name}.binary": split(name) for name in ("none", "ldp")}
    found["vertical prediction"] = runs.vertical_prediction(parts_of("none"))
    found["simfl.binary"] = similar()
    return {"hashes.json": as_json({name: _hashes(run.messages) for name, run in found.items()})}


def queries() -> Files:
    """Of every kind and task the first question that a run asks."""
    found: dict[str, bytes] = {}
    for method, task in runs.CASES:
        for kind, data in trained(method, task).queries:
            found.setdefault(f"{kind}.{task}", data)
    for task in SCHEMAS:
        for kind, data in measured(task).queries:
            found.setdefault(f"{kind}.{task}", data)
    return {"queries.txt": lines_of(sorted(found.items()))}


def _kept_ledger(path: Path) -> Ledger:
    """One ledger with a run of every kind: Gaussian, pure, an evaluation, two sessions."""
    with fixed("ledger"):
        run = runs.Run(ledger=Ledger.open(path))
    model = model_of(runs.train("random-trees", "binary", run))
    runs.train("private-tree", "binary", run)
    runs.train("auto", "binary", run)
    runs.measure(model, "binary", run)
    runs.similarity(run)
    runs.vertical("ldp", run)
    return run.ledger


def lines_in(ledger: Ledger) -> list[tuple[str, bytes]]:
    """Every line as bytes, its hash among them."""
    found = []
    for line in ledger.lines():
        fields = [value.hex() if isinstance(value, bytes) else value for value in line]
        found.append((f"{line.seq:04d}-{line.owner}-{line.kind}", canonical_json(fields)))
    return found


def ledgers() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = _kept_ledger(path)
        lines = lines_in(ledger)
        ledger.close()
        return {"ledger.sqlite": path.read_bytes(), "lines.json": as_json(_hashes(lines))}


def spending() -> Files:
    """What the stored ledger adds up to for every owner."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = _kept_ledger(Path(folder) / "ledger.sqlite")
        found = spent_in(ledger)
        ledger.close()
    return {"spending.json": as_json(found)}


def spent_in(ledger: Ledger) -> dict[str, Any]:
    return {
        one.owner: {
            "mu": one.spending.mu.hex(),
            "pure": float(one.spending.pure).hex(),
            "coordinates": one.spending.coordinates,
            "runs": one.spending.runs,
            "charges": one.charges,
            "releases": one.releases,
            "answers": one.answers,
        }
        for one in verify(ledger)
    }


def exports() -> Files:
    """Models in other libraries' formats: hashes, because those libraries own the formats."""
    found: dict[str, str] = {}
    for method, task in runs.CASES:
        if method not in ("auto", "random-trees", "dp-rf", "private-tree"):
            continue
        for name, write in EXPORTS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                try:
                    write(model_of(trained(method, task)), path)
                except HedgerowError as error:
                    found[f"{name}.{method}.{task}"] = f"refused: {error}"
                    continue
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                found[f"{name}.{method}.{task}"] = digest
    return {"hashes.json": as_json(found)}


def all_labels() -> Files:
    return {"labels.json": as_json(labels())}


# By folder: what makes its files, and the number to raise when they change on purpose.
FORMATS: dict[str, tuple[Callable[[], Files], str]] = {
    "models": (models, "FORMAT in model/files.py"),
    "meanings": (meanings, "FORMAT in model/files.py"),
    "statements": (statements, "FORMAT in model/statement.py"),
    "parts": (parts, "FORMAT in methods/fedxgboost/model.py"),
    "evaluations": (evaluations, "FORMAT in evaluation/result.py"),
    "plans": (plans, "FORMAT in privacy/accounting/plan.py"),
    "schemas": (schemas, "FORMAT in data/schema_toml.py"),
    "rosters": (rosters, "FORMAT in engines/site.py"),
    "limits": (limits, "FORMAT in deployment/limits_file.py"),
    "keys": (keys, "the number in the label of the derivation (protocol/masks.py and others)"),
    "messages": (messages, "VERSION in protocol/messages.py"),
    "transcripts": (transcripts, "VERSION in protocol/messages.py"),
    "queries": (queries, "VERSION in protocol/messages.py"),
    "ledgers": (ledgers, "FORMAT in privacy/ledger/ledger.py"),
    "spending": (spending, "FORMAT in privacy/ledger/ledger.py"),
    "exports": (exports, "none of ours: say in CHANGELOG what changes for readers"),
    "labels": (all_labels, "the number at the end of the label"),
}
