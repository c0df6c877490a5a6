"""Files and messages of the stored version are read, mean the same, and are written back."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from hedgerow.data.schema import Schema
from hedgerow.deployment.limits_file import in_force, limits_in_words
from hedgerow.engines.cards import read_card, read_roster
from hedgerow.evaluation import Evaluation
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.methods.registry import METHODS
from hedgerow.methods.simfl.kept import Kept
from hedgerow.model.ensemble import Ensemble
from hedgerow.model.statement import Statement
from hedgerow.packing import unpack
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.identity import Announcement, Identity
from hedgerow.protocol.masks import MaskKeys
from hedgerow.protocol.messages import REFUSALS, Ask, Message
from hedgerow.protocol.replies import Answer
from hedgerow.protocol.roles import Agreement
from hedgerow.queries import QUERIES, query_bytes, query_from_bytes
from tests.golden import runs
from tests.golden.fixed import fixed
from tests.golden.ledgers import lines_in, spent_in
from tests.golden.make import STORED
from tests.golden.models import meaning_of
from tests.golden.text import as_json, items_in


def files(folder: str, suffix: str) -> list[Path]:
    return sorted((STORED / folder).glob(f"*{suffix}"))


def table_of(path: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((STORED / path).read_text())
    return found


def named(file: Path) -> str:
    return file.name


@pytest.mark.parametrize("file", files("models", ".hedge"), ids=named)
def test_a_stored_model_predicts_and_says_the_same(file: Path) -> None:
    data = file.read_bytes()
    assert Ensemble.from_bytes(data).to_bytes() == data
    assert meaning_of(data) == table_of("meanings/models.json")[file.name]


def test_every_method_and_task_has_a_stored_model() -> None:
    stored = {file.stem.split(".")[0] for file in files("models", ".hedge")}
    assert stored >= set(METHODS)
    tasks = {
        Ensemble.from_bytes(f.read_bytes()).schema.label.task for f in files("models", ".hedge")
    }
    assert tasks == {"binary", "multiclass", "regression", "survival", "counts"}


def test_parts_of_a_vertical_model_merge_to_the_stored_one() -> None:
    for protection in ("none", "ldp"):
        stored = [file.read_bytes() for file in files("parts", ".part")]
        parts = [Part.from_bytes(data) for data in stored]
        assert [part.to_bytes() for part in parts] == stored
        chosen = [part for part in parts if part.run == f"vertical.{protection}"]
        expected = (STORED / f"models/vertical-{protection}.binary.hedge").read_bytes()
        assert merged(chosen).to_bytes() == expected


@pytest.mark.parametrize("file", files("kept", ".kept"), ids=named)
def test_what_a_party_kept_is_read_and_written_back(file: Path) -> None:
    kept = Kept.from_bytes(file.read_bytes())
    assert kept.to_bytes() == file.read_bytes()
    others = [Kept.from_bytes(other.read_bytes()).hash for other in files("kept", ".kept")]
    assert set(others) == {kept.hash}


def test_stored_statements_say_the_same_words() -> None:
    for told in table_of("statements/statements.json").values():
        assert isinstance(told, dict)
        statement = Statement.from_dict(told["values"])
        assert statement.words().split("\n") == told["words"]
        assert statement.guarantee in ("epsilon-delta", "pure")


@pytest.mark.parametrize("file", files("evaluations", ".json"), ids=named)
def test_a_stored_evaluation_is_written_back(file: Path) -> None:
    assert Evaluation.load(file).to_json() == file.read_text()


@pytest.mark.parametrize("file", files("plans", ".toml"), ids=named)
def test_a_stored_plan_has_its_hash_and_is_written_back(file: Path, tmp_path: Path) -> None:
    plan = Plan.read(file)
    assert plan.hash == table_of("plans/hashes.json")[file.stem]
    plan.write(tmp_path / "plan.toml")
    assert (tmp_path / "plan.toml").read_bytes() == file.read_bytes()


def test_plans_of_every_accounting_are_stored() -> None:
    documents = [tomllib.loads(file.read_text()) for file in files("plans", ".toml")]
    assert any("rest" in one for one in documents)
    assert any("branches" in one for one in documents)
    assert {one["privacy"]["accounting"] for one in documents} == {"exact", "renyi", "pure"}
    assert {one["privacy"]["trust"] for one in documents} == {"coordinator", "parties", "nobody"}


@pytest.mark.parametrize("file", files("schemas", ".toml"), ids=named)
def test_a_stored_schema_has_its_hash_and_is_written_back(file: Path, tmp_path: Path) -> None:
    schema = Schema.read(file)
    assert schema.hash == table_of("schemas/hashes.json")[file.stem]
    schema.write(tmp_path / "schema.toml")
    assert (tmp_path / "schema.toml").read_bytes() == file.read_bytes()


def test_the_stored_roster_card_and_limits_are_read() -> None:
    file = STORED / "rosters/roster.toml"
    agreed, known = read_roster(file), table_of("rosters/facts.json")
    assert agreed.roster.hash == known["hash"]
    assert agreed.phrase == known["phrase"]
    assert agreed.to_toml() == file.read_text()
    card = read_card(STORED / "rosters/north.card.toml")
    assert (card.name, card.phrase) == ("north", known["card phrase"])
    text = (STORED / "limits/limits.toml").read_text()
    found, facts = in_force(text, "north", "limits.toml", "default"), table_of("limits/facts.json")
    assert (found.hash, limits_in_words(found.limits)) == (facts["hash"], facts["words"])


def messages_of(name: str) -> list[tuple[str, Message]]:
    items = items_in((STORED / f"messages/{name}.txt").read_bytes())
    assert all(Message.from_bytes(data).to_bytes() == data for _, data in items)
    return [(item, Message.from_bytes(data)) for item, data in items]


RUNS = [file.stem for file in files("messages", ".txt")]


# Of the others the bodies make sense to no party, which is why they were refused.
SENSIBLE = [name for name in RUNS if name != "refusals"]


@pytest.mark.parametrize("name", SENSIBLE)
def test_bodies_of_stored_messages_are_read_and_written_back(name: str) -> None:
    tables = {"plan": Plan, "announcement": Announcement, "agreement": Agreement}
    for _, message in messages_of(name):
        if message.type == "ask":
            assert Ask.from_body(message.body).body() == message.body
        elif message.type in ("open", "opened", "agree"):
            (key,) = tables.keys() & message.values.keys()
            assert tables[key].from_dict(message.values[key]).to_dict() == message.values[key]


@pytest.mark.parametrize("name", SENSIBLE)
def test_stored_messages_are_signed_by_who_sent_them(name: str) -> None:
    label = {"evaluation": "evaluation binary", "simfl": "simfl", "vertical-none": "vertical none"}
    method, task = name.split(".")
    with fixed(label.get(method, f"{method} {task}")):
        # The order in which a federation of one process makes its keys.
        signers = {who: Identity() for who in (*runs.PARTIES, "coordinator")}
    for item, message in messages_of(name):
        assert message.is_signed_by(signers[item.rsplit("-", 1)[1]].public)


def test_stored_answers_open_with_the_coordinators_key() -> None:
    with fixed("random-trees binary"):
        # The federation's first key is for no run; the second is for the one that it opens.
        boxes = {who: MaskKeys() for who in (*runs.PARTIES, "no run", "coordinator")}
    answered = 0
    for item, message in messages_of("random-trees.binary"):
        if message.type == "answer":
            party = item.rsplit("-", 1)[1]
            key = boxes[party].public
            body = boxes["coordinator"].unseal(key, message.request, party, message.body)
            answer = Answer.from_body(body)
            assert (answer.body, answer.party) == (body, party)
            answered += 1
    assert answered == 12


def test_messages_of_every_type_are_stored() -> None:
    types = {message.type for name in RUNS for _, message in messages_of(name)}
    assert types == {
        "open", "opened", "join", "joined", "ready", "ask", "answer", "need-trees", "refusal",
        "agree", "meet", "letters", "show", "leave",
    }  # fmt: skip
    assert json.loads((STORED / "messages/words.json").read_text()) == sorted(REFUSALS)


def test_stored_questions_are_read_and_written_back() -> None:
    items = items_in((STORED / "queries/queries.txt").read_bytes())
    for _, data in items:
        query = query_from_bytes(data)
        again = QUERIES[query.kind].from_parts(unpack(data)[0]["query"], unpack(data)[1])
        assert query_bytes(again) == data
    assert {item.split(".")[0] for item, _ in items} == set(QUERIES)


def test_the_stored_ledger_verifies_and_adds_up_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copy(STORED / "ledgers/ledger.sqlite", path)
    path.chmod(0o600)
    with Ledger.open(path) as ledger:
        assert as_json(spent_in(ledger)) == (STORED / "spending/spending.json").read_bytes()
        names = [item for item, _ in lines_in(ledger)]
        kinds = {name.rsplit("-", 1)[1] for name in names}
        assert kinds >= {"boot", "peer", "reserve", "charge", "answer", "release", "disclose"}
        assert ledger.verify() == len(names)
