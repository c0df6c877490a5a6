"""Parties add rows: a later run looks at these alone, and finds what redoing all would find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hedgerow import SimilarityBoostingClassifier, SimilarityMemory
from hedgerow.coordinator.sessions import Session
from hedgerow.data.tables import Rows
from hedgerow.deployment.roles import role_factories
from hedgerow.engines.local import local_federation
from hedgerow.errors import FormatError, Refused, SettingsError
from hedgerow.methods.simfl import finding, neighbours
from hedgerow.methods.simfl.kept import Kept, place_of
from hedgerow.methods.simfl.run import agreement_for, model_of
from hedgerow.methods.simfl.settings import SimilaritySettings
from hedgerow.packing import pack, unpack
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.protocol.roles import MemoryStore
from tests.methods.simfl.tables import dealt, mixed_rows, numbers, train

SETTINGS = SimilaritySettings(n_trees=4, max_depth=3, learning_rate=0.3, seed=5)


def tables_before_and_after() -> tuple[Any, dict[str, Rows], dict[str, Rows]]:
    """Three parties: p0 adds 30 rows, p1 none, p2 one."""
    schema, rows = mixed_rows(330)
    after = dealt(rows, 3)
    counts = {"p0": 80, "p1": 110, "p2": 109}
    before = {name: after[name].take(np.arange(n)) for name, n in counts.items()}
    return schema, before, after


def test_added_rows_give_what_redoing_all_would_give(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, before, after = tables_before_and_after()
    memory = SimilarityMemory()
    _, first = train(before, schema, SETTINGS, memory)
    looked: list[int] = []
    search = neighbours._search

    def counted(*about: Any) -> None:
        looked.append(len(about[2]) * len(about[4]))  # own rows, others' rows
        search(*about)

    monkeypatch.setattr(neighbours, "_search", counted)
    model, second = train(after, schema, SETTINGS, memory)
    pairs = sum(looked)
    monkeypatch.setattr(finding, "typical_width", lambda *about: first["p0"].width)
    redone, roles = train(after, schema, SETTINGS)
    # Rows of p0, p1 and p2: 80 + 30, 110, 109 + 1. Both ways of a pair have an added row.
    assert pairs == 2 * (110 * 110 - 80 * 110 + 110 * 110 - 80 * 109 + 110 * 110 - 110 * 109)
    for name, role in roles.items():
        assert role.width == second[name].width == first[name].width
        for other, found in role.neighbours.items():
            assert np.array_equal(found.found, second[name].neighbours[other].found)
            assert found.n_others == second[name].neighbours[other].n_others
        assert second[name].sent["tables"] < 0.5 * role.sent["tables"]
    assert model.trees == redone.trees


def test_a_run_is_continued_again_and_without_added_rows() -> None:
    schema, before, after = tables_before_and_after()
    memory = SimilarityMemory()
    for tables in (before, after, after):
        model, roles = train(tables, schema, SETTINGS, memory)
    _, once = train(before, schema, SETTINGS, grown := SimilarityMemory())
    same, direct = train(after, schema, SETTINGS, grown)
    assert model.trees == same.trees
    assert (memory.run, grown.run) == ("local-3", "local-2")
    for name, role in roles.items():
        for other, found in role.neighbours.items():
            assert np.array_equal(found.found, direct[name].neighbours[other].found)
    assert model.record["continues"] == "local-2"
    assert any("kept for later" in d.what for d in model.statement.disclosures)
    assert once["p0"].neighbours["p1"].n_others == 110


def session(
    tables: Mapping[str, Rows], schema: Any, settings: SimilaritySettings, run: str, stores: Any
) -> Any:
    """The same over a federation: signed messages, sealed messages, an agreement on the ledger."""
    ledger = Ledger.in_memory()
    agreement = agreement_for(schema, tuple(tables), settings, run)
    federation = local_federation(tables, schema, ledger, roles=role_factories(), stores=stores)
    return model_of(Session(federation, agreement, ledger).run(), schema, agreement)


def test_parties_that_write_sealed_messages_continue_a_run() -> None:
    schema, before, after = tables_before_and_after()
    stores = {name: MemoryStore() for name in after}
    kept = replace(SETTINGS, keep=True)
    session(before, schema, kept, "a1", stores)
    continuing = replace(kept, continues="a1")
    apart = session(after, schema, continuing, "a2", stores)
    memory = SimilarityMemory()
    train(before, schema, SETTINGS, memory)
    assert apart.trees == train(after, schema, SETTINGS, memory)[0].trees
    data = stores["p0"].get(place_of("a2"))
    assert data is not None
    assert {name: len(t) for name, t in Kept.from_bytes(data).tables.items()} == {
        name: table.n_rows for name, table in after.items()
    }
    with pytest.raises(Refused):  # the reason stays at the site
        session(after, schema, replace(continuing, continues="a9"), "a3", stores)


def test_tables_that_changed_otherwise_are_refused() -> None:
    schema, before, after = tables_before_and_after()
    memory = SimilarityMemory()
    train(before, schema, SETTINGS, memory)
    fewer = {**after, "p1": after["p1"].take(np.arange(109))}
    with pytest.raises(FormatError, match="p1 has 109 rows, and had 110 in run 'local-1'"):
        train(fewer, schema, SETTINGS, memory)
    turned = {**after, "p2": after["p2"].take(np.arange(110)[::-1].copy())}
    with pytest.raises(FormatError, match="the first 109 of 110 rows of p2 are not those"):
        train(turned, schema, SETTINGS, memory)
    with pytest.raises(SettingsError, match="seed is 6, and the memory's hashes were made with 5"):
        train(after, schema, replace(SETTINGS, seed=6), memory)
    alone = {name: after[name] for name in ("p0", "p1")}
    with pytest.raises(SettingsError, match=r"its parties was .*'p2'"):
        train(alone, schema, SETTINGS, memory)
    with pytest.raises(SettingsError, match="kept nothing of run 'gone'"):
        train(after, schema, replace(SETTINGS, continues="gone"))
    assert memory.run == "local-1"
    assert train(after, schema, SETTINGS, memory)[0].trees  # nothing was lost by the refusals


def test_parties_that_remember_different_runs_are_told() -> None:
    schema, before, after = tables_before_and_after()
    memory = SimilarityMemory()
    train(before, schema, SETTINGS, memory)
    store = memory.stores(["p2"])["p2"]
    values, arrays = unpack(store.get(place_of("local-1")) or b"")
    arrays["table0"][7, 0] ^= np.uint64(1)
    store.put(place_of("local-1"), pack(values, arrays))
    with pytest.raises(FormatError, match="remembers run 'local-1' otherwise"):
        train(after, schema, SETTINGS, memory)
    store.put(place_of("local-1"), pack({"name": "p2"}))
    with pytest.raises(FormatError, match="kept of similar rows is not readable"):
        train(after, schema, SETTINGS, memory)


def test_estimators_take_a_memory() -> None:
    schema, rows = numbers(200, 6)
    X = np.random.default_rng(3).uniform(size=(200, 6))
    y, parties = (X[:, 0] > X[:, 1]).astype(int), np.arange(200) % 2
    model = SimilarityBoostingClassifier(schema, n_trees=5, max_depth=3)
    memory = SimilarityMemory()
    model.fit(X[:150], y[:150], parties=parties[:150], memory=memory)
    before, seed = model.sent_["0"]["tables"], memory.seed
    model.fit(X, y, parties=parties, memory=memory)
    assert memory.seed == seed
    assert model.model_.record["seed"] == seed
    assert model.sent_["0"]["tables"] < before
    assert rows.n_rows == 200
    with pytest.raises(SettingsError, match="similarity is False"):
        model.set_params(settings={"similarity": False}).fit(X, y, parties=parties, memory=memory)
