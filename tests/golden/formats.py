"""Every stored format: the folder of its files, what makes them, the number to raise."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.declared import limits, plans, relays, rosters, schemas, streams
from tests.golden.labels import labels
from tests.golden.ledgers import ledgers, spending
from tests.golden.models import evaluations, exports, kept, meanings, models, parts, statements
from tests.golden.sent import keys, messages, queries, transcripts
from tests.golden.text import Files, as_json


def all_labels() -> Files:
    return {"labels.json": as_json(labels())}


# By folder: what makes its files, and the number to raise when they change on purpose.
FORMATS: dict[str, tuple[Callable[[], Files], str]] = {
    "models": (models, "FORMAT in model/files.py"),
    "meanings": (meanings, "FORMAT in model/files.py"),
    "statements": (statements, "FORMAT in model/statement.py"),
    "parts": (parts, "FORMAT in methods/fedxgboost/model.py"),
    "kept": (kept, "the number in the label of methods/simfl/kept.py"),
    "evaluations": (evaluations, "FORMAT in evaluation/result.py"),
    "plans": (plans, "FORMAT in privacy/accounting/plan.py"),
    "schemas": (schemas, "SCHEMA in data/schema_checks.py"),
    "rosters": (rosters, "FORMAT in engines/cards.py or engines/site.py"),
    "streams": (streams, "VERSION in engines/grpc/hello.py"),
    "relays": (relays, "FORMAT in engines/party_end.py"),
    "limits": (limits, "FORMAT in deployment/limits_file.py"),
    "keys": (keys, "the number in the label of the derivation (protocol/masks.py and others)"),
    "messages": (messages, "VERSION in protocol/messages.py"),
    "transcripts": (transcripts, "VERSION in protocol/messages.py"),
    "queries": (queries, "VERSION in protocol/messages.py"),
    "ledgers": (ledgers, "FORMAT in privacy/ledger/migrations.py"),
    "spending": (spending, "FORMAT in privacy/ledger/migrations.py"),
    "exports": (exports, "none of ours: say in CHANGELOG what changes for readers"),
    "labels": (all_labels, "the number at the end of the label"),
}
