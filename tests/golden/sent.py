"""What travels: messages of whole runs, refusals, questions, and what keys are derived to."""

from __future__ import annotations

from typing import Any

from hedgerow.data.binning import fine_grid
from hedgerow.data.schema import Numeric, Schema
from hedgerow.methods.fedxgboost.ids import seal_ids
from hedgerow.methods.simfl.kept import place_of
from hedgerow.privacy.accounting.rounds import Draw
from hedgerow.privacy.ledger.witnesses import OwnHead, commitment_of
from hedgerow.privacy.noise.poisson_sampling import PoissonSampler
from hedgerow.protocol.identity import Announcement, Identity, digest_of
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.masks import Context, MaskKeys
from hedgerow.protocol.messages import REFUSALS, Message, plain
from hedgerow.protocol.witnesses import Show, signed_head
from hedgerow.queries import NO_TREES, FineColumnSums, query_bytes
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.tables import PARTIES, SCHEMAS
from tests.golden.text import Files, as_json, hashes_of, lines_of
from tests.golden.trained import WHOLE, measured, parts_of, similar, split, trained


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
    among = SumSet(Joined(announced), PARTIES, 1)
    context = Context("plan", "schema", 4, 1, "request", among)
    masks = {n: [int(x) for x in boxes[n].mask(n, context, 5)] for n in PARTIES}
    sealed = boxes["east"].seal(boxes["west"].public, "request", "east", b"an answer")
    sampler = PoissonSampler.of(b"s" * 32, ("east", "plan", "line"), Draw(3, 0.25))
    seal = seal_ids(["a", "b", "c"], b"k" * 32)
    facts = {
        "announcement": {name: one.to_dict() for name, one in announced.items()},
        "announcements": digest_of(announced),
        "masks": masks,
        "sealed": sealed.hex(),
        "secret of a party": {name: one.secret().hex() for name, one in signers.items()},
        "sample": {
            "key": sampler.key.hex(),
            "rows": sampler.taken(40).tolist(),
            "part": sampler.part(2).taken(40).tolist(),
        },
        "witnesses": _witnessed(signers["east"], signers["west"], announced["east"]),
        "ids": [seal.count, seal.ordered, seal.unordered],
        "kept similar rows": place_of("a run"),
    }
    return {"facts.json": as_json(facts)}


def _witnessed(east: Identity, west: Identity, announced: Announcement) -> dict[str, Any]:
    """A head that east leaves, and what west shows of it in a later handshake."""
    count, nonce, head, time = 7, "ab" * 32, "cd" * 32, "2026-01-01T00:00:00.000+00:00"
    about = (commitment_of(nonce, head, count), count, time, 90, head, nonce, "a run", ("west",))
    left = signed_head(OwnHead(*about, east.public), "east", "ef" * 32, east)
    show = Show("west", left, announced, time).signed(west, "east", "01" * 32)
    return {"head": vars(left), "show": show.to_dict()}


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
            ("show", {"run": "r1", "announcements": []}),
            ("leave", {"run": "r1", "heads": []}),
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
    return {"hashes.json": as_json({name: hashes_of(run.messages) for name, run in found.items()})}


def queries() -> Files:
    """Of every kind and task the first question that a run asks."""
    found: dict[str, bytes] = {}
    for method, task in runs.CASES:
        for kind, data in trained(method, task).queries:
            found.setdefault(f"{kind}.{task}", data)
    for task in SCHEMAS:
        for kind, data in measured(task).queries:
            found.setdefault(f"{kind}.{task}", data)
    found["fine-column-sums.binary"] = query_bytes(fine_cells())
    return {"queries.txt": lines_of(sorted(found.items()))}


def fine_cells() -> FineColumnSums:
    """Of a schema that the runs do not have: an integer column wider than the base grid."""
    schema = Schema((Numeric("gain", 0, 600, integer=True),), SCHEMAS["binary"].label)
    cuts = ((40, 41), tuple(range(len(fine_grid(schema)[0].edges))))
    bins, weights = (4, len(cuts[1]) + 2), (1.0, 0.5)
    query = FineColumnSums((0, 0), cuts, bins, weights, "logistic", NO_TREES, "averaging")
    query.check(schema)
    return query
