"""Rows on a cluster give the sums and models of one process, whatever happens to workers."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate, Progress
from hedgerow.data.schema import Schema, Unit
from hedgerow.data.tables import Rows, rows_of
from hedgerow.data.weights import Weight
from hedgerow.engines.dask import cluster, partitions, rows
from hedgerow.engines.dask.cluster import WorkersLost
from hedgerow.engines.dask.engine import dask_federation
from hedgerow.engines.dask.rows import ClusterRows
from hedgerow.engines.dask.sources import ParquetFolder, Source
from hedgerow.engines.local import local_federation
from hedgerow.errors import SettingsError, SumFailed, TableError
from hedgerow.methods.registry import METHODS, method_named, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.verify import verify
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import check_federation, noise_off
from tests.conftest import MIXED, Table, mixed_rows, mixed_table, promise, split_rows
from tests.engines.dask.conftest import write_files
from tests.slow import slow

FEW = ("auto", "private-tree", "dp-xgboost")  # the others ask nothing new of a cluster
SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {},
    "private-tree": {"max_depth": 3},
    "dp-ebm": {"n_trees": 2},
    "dp-ebm-newton": {"n_trees": 2},
}
ON_A_CLUSTER = [
    pytest.param(name, marks=() if name in FEW else slow)
    for name, method in METHODS.items()
    if method.trust in (None, "coordinator")
]


@pytest.fixture(scope="module")
def held(folder: Path, client: Client) -> ClusterRows:
    return ClusterRows(ParquetFolder(folder, client, MIXED), MIXED, client)


def plan_of(method: str, privacy: Privacy, schema: Schema = MIXED) -> Plan:
    return plan_for(schema, privacy, method, SETTINGS.get(method, {"n_trees": 4}), seed=3)


def grown(
    federation: Federation, plan: Plan, ledger: Ledger | None = None, observe: Any = None
) -> Ensemble:
    gate = Gate(federation, plan, ledger or Ledger.in_memory(), observe=observe)
    with noise_off():
        return method_named(plan.method).grow(gate)


def in_one_process(table: Any, plan: Plan, schema: Schema = MIXED) -> Ensemble:
    here = local_federation({"all": rows_of(table, schema)}, schema, trust="coordinator")
    return grown(here, plan)


class InMemory:
    """Rows as partitions that travel to the workers; for the contract that all engines keep."""

    name = "rows"

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables

    def __len__(self) -> int:
        return len(self.tables)

    def name_of(self, index: int) -> str:
        return f"part {index}"

    def part(self, client: Any, index: int) -> Any:
        return (self.tables[index], None)


def test_every_engine_gives_the_same_exact_sum(client: Client) -> None:
    table = mixed_table(60, seed=1)

    def make(parts: Sequence[Rows], trust: str) -> Federation:
        n = len(parts)
        split = [{name: values[i::n] for name, values in table.items()} for i in range(n)]
        source: Source = InMemory(split)
        privacy = Privacy(1.0, 1e-5, trust)  # type: ignore[arg-type]
        return dask_federation(ClusterRows(source, MIXED, client), MIXED, privacy)

    check_federation(make, MIXED, mixed_rows(table), trusts=("coordinator",))


@pytest.mark.parametrize("method", ON_A_CLUSTER)
def test_every_method_gives_the_model_of_one_process(
    method: str, held: ClusterRows, table: Table
) -> None:
    privacy = promise(method)
    plan = plan_of(method, privacy)
    model = grown(dask_federation(held, MIXED, privacy), plan)
    assert model.trees == in_one_process(table, plan).trees
    assert len(model.trees) > 0


@pytest.mark.parametrize("method", ["auto", "dp-gbm"])
def test_three_parties_and_a_cluster_give_one_model(
    method: str, held: ClusterRows, table: Table
) -> None:
    plans = [plan_of(method, promise(method, trust)) for trust in ("coordinator", "parties")]
    three = local_federation(split_rows(mixed_rows(table), [200, 300]), MIXED)
    here = grown(three, plans[1])
    there = grown(dask_federation(held, MIXED, plans[0].privacy), plans[0])
    assert here.trees == there.trees
    assert there.statement.simulated
    assert (here.statement.trust, there.statement.trust) == ("parties", "coordinator")


def test_a_killed_worker_costs_time_alone(
    folder: Path, client: Client, table: Table, tmp_path: Path
) -> None:
    mine = ClusterRows(ParquetFolder(folder, client, MIXED), MIXED, client)
    privacy = promise("dp-tr-newton")
    plan = plan_of("dp-tr-newton", privacy)
    victim = next(iter(mine._placement.held()))

    def kill(progress: Progress) -> None:
        if progress.slot == 1:
            os.kill(client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)

    with Ledger.open(tmp_path / "ledger") as ledger:
        model = grown(dask_federation(mine, MIXED, privacy, ledger), plan, ledger, kill)
        charges = ledger.lines("all", "charge", plan.run)
        assert [(line.slot, line.attempt) for line in charges] == [
            (slot, 1) for slot in range(plan.n_slots)
        ]
        assert len(verify(ledger)) == 2
    assert mine.cluster.lost == 1
    assert victim not in mine._placement.held()
    assert model.trees == in_one_process(table, plan).trees


def forget_partitions() -> None:
    partitions._held.clear()


def forget_scores() -> None:
    for one in partitions._held.values():
        assert one.scores is not None
        one.scores.reset()


@pytest.mark.parametrize("forget", [forget_partitions, forget_scores])
def test_a_worker_that_forgot_something_gets_it_again(
    forget: Any, held: ClusterRows, client: Client, table: Table
) -> None:
    """As after a restart at the same address: leaving its part out of a sum would go unseen."""
    privacy = promise("dp-tr-newton")
    plan = plan_of("dp-tr-newton", privacy)

    def observe(progress: Progress) -> None:
        if progress.slot == 1:
            client.run(forget, workers=[next(iter(held._placement.held()))])

    model = grown(dask_federation(held, MIXED, privacy), plan, observe=observe)
    assert model.trees == in_one_process(table, plan).trees


@slow
def test_a_sum_over_many_workers_is_added_on_them(
    held: ClusterRows, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_FAN", 2)
    privacy = promise("dp-tr-newton")
    plan = plan_of("dp-tr-newton", privacy)
    asked, right = [], held.cluster.results
    monkeypatch.setattr(
        held.cluster, "results", lambda tasks, needed: asked.append(tasks) or right(tasks, needed)
    )
    model = grown(dask_federation(held, MIXED, privacy), plan)
    assert model.trees == in_one_process(table, plan).trees
    assert {len(tasks) for tasks in asked} == {2}
    assert all("merge" in task.key for tasks in asked for task in tasks)


def test_a_partition_that_changed_is_refused(client: Client, tmp_path: Path) -> None:
    write_files(tmp_path, mixed_table(300, seed=2), 2)
    mine = ClusterRows(ParquetFolder(tmp_path, client, MIXED), MIXED, client)
    write_files(tmp_path, mixed_table(300, seed=3), 2)
    mine._placement.drop([1])
    privacy = promise("dp-tr-newton")
    plan = plan_of("dp-tr-newton", privacy)
    ledger = Ledger.in_memory()
    with pytest.raises(SumFailed, match=r"part-1\.parquet has other rows"):
        grown(dask_federation(mine, MIXED, privacy, ledger), plan, ledger)
    assert len(ledger.lines("all", "charge", plan.run)) == 1
    assert len(ledger.lines("coordinator", "charge", plan.run)) == 1


def test_a_cluster_that_is_lost_ends_the_run_with_one_charge(
    held: ClusterRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise WorkersLost

    monkeypatch.setattr(held.cluster, "results", lose)
    privacy = promise("dp-tr-newton", spare=2)
    plan, ledger = plan_of("dp-tr-newton", privacy), Ledger.in_memory()
    with pytest.raises(SumFailed, match="lost 5 times during one question"):
        grown(dask_federation(held, MIXED, privacy, ledger), plan, ledger)
    assert len(ledger.lines("coordinator", "charge", plan.run)) == 1


def pause_at(share: float, dask_worker: Any = None) -> None:
    """The share of its memory at which Dask gives a worker no more tasks."""
    dask_worker.memory_manager.memory_pause_fraction = share


@slow
def test_a_worker_without_memory_ends_the_run(
    held: ClusterRows, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PAUSED_SECONDS", 0.5)
    privacy = promise("dp-tr-newton")
    plan = plan_of("dp-tr-newton", privacy)

    def observe(progress: Progress) -> None:
        client.run(pause_at, 1e-9, workers=[next(iter(held._placement.held()))])

    try:
        with pytest.raises(SumFailed, match=r"paused 1 of the workers .* memory is almost full"):
            grown(dask_federation(held, MIXED, privacy), plan, observe=observe)
    finally:
        client.run(pause_at, 0.8)


def per_person(k: int) -> Schema:
    return replace(MIXED, unit=Unit("person", "id", k))


def test_a_person_has_k_rows_on_the_whole_cluster(client: Client, tmp_path: Path) -> None:
    table = mixed_table(600, seed=8)
    table["id"] = np.random.default_rng(1).integers(0, 120, 600).tolist()
    write_files(tmp_path, table, 5)
    schema = per_person(2)
    privacy = promise("auto")
    plan = plan_of("auto", privacy, schema)
    mine = ClusterRows(ParquetFolder(tmp_path, client, schema), schema, client)
    counting = mine._placement._counting.values()
    bits = np.concatenate([np.unpackbits(np.frombuffer(b, np.uint8), count=120) for b in counting])
    ids = np.array(table["id"])[bits.astype(bool)]
    assert np.bincount(ids).max() == 2
    assert len(ids) == sum(min(2, n) for n in np.bincount(table["id"]))
    expected = in_one_process(table, plan, schema)
    mine._placement.drop([0, 3])  # these are read again, and keep the same rows
    assert grown(dask_federation(mine, schema, privacy), plan).trees == expected.trees


def test_partitions_keep_the_weights_of_their_rows(client: Client, tmp_path: Path) -> None:
    table = mixed_table(600, seed=8)
    table["w"] = np.random.default_rng(1).uniform(0, 3, 600).tolist()
    table["id"] = list(range(600))
    write_files(tmp_path, table, 5)
    for schema in (replace(MIXED, weight=Weight("w", 2.0)),
                   replace(per_person(2), weight=Weight("w", 2.0))):  # fmt: skip
        privacy = promise("auto")
        plan = plan_of("auto", privacy, schema)
        mine = ClusterRows(ParquetFolder(tmp_path, client, schema), schema, client)
        expected = in_one_process(table, plan, schema)
        mine._placement.drop([1])
        assert grown(dask_federation(mine, schema, privacy), plan).trees == expected.trees
        assert expected.trees != in_one_process(table, plan_of("auto", privacy)).trees


def test_what_is_wrong_with_a_partition_names_its_file(client: Client, tmp_path: Path) -> None:
    table = mixed_table(300, seed=5)
    write_files(tmp_path, table, 3)
    file = tmp_path / "part-1.parquet"
    wrong = pq.read_table(file)
    column = wrong.column("sick").to_pylist()
    column[7] = "perhaps"
    pq.write_table(wrong.set_column(5, "sick", [column]), file)
    with pytest.raises(TableError, match=r"part-1\.parquet: label 'sick' has 1 rows of a class"):
        ClusterRows(ParquetFolder(tmp_path, client, MIXED), MIXED, client)
    pq.write_table(wrong.drop_columns(["dose"]), file)
    with pytest.raises(TableError, match=r"part-1\.parquet has no column 'dose'"):
        ParquetFolder(tmp_path, client, MIXED)
    file.write_bytes(b"no table")
    with pytest.raises(TableError, match=r"part-1\.parquet is not readable as Parquet"):
        ParquetFolder(tmp_path, client, MIXED)


@pytest.mark.parametrize("trust", ["parties", "nobody"])
def test_a_cluster_has_one_owner(trust: str, held: ClusterRows) -> None:
    with pytest.raises(SettingsError, match="one owner"):
        dask_federation(held, MIXED, Privacy(1.0, 1e-5, trust))  # type: ignore[arg-type]


def n_held(run: str) -> int:
    return sum(key[0] == run for key in partitions._held)


@slow
def test_partitions_go_when_nobody_wants_them(folder: Path, client: Client) -> None:
    mine = ClusterRows(ParquetFolder(folder, client, MIXED), MIXED, client)
    run = mine._run
    assert sum(client.run(n_held, run).values()) == mine.n_partitions == 6
    del mine
    gc.collect()
    deadline = time.monotonic() + 30
    while sum(client.run(n_held, run).values()):
        assert time.monotonic() < deadline, "workers keep partitions of a run that ended"
        time.sleep(0.05)


def missing_module() -> None:
    import hedgerow_that_is_not_installed  # noqa: F401


def test_a_worker_without_hedgerow_is_told_apart(client: Client) -> None:
    reached = cluster.Cluster(client)
    worker = next(iter(reached.workers()))
    with pytest.raises(SettingsError, match=r"cannot import .* install hedgerow\[dask\]"):
        reached.results([reached.submit(worker, missing_module)], [worker])


@slow
def test_a_result_that_died_with_its_worker_is_not_waited_for(client: Client) -> None:
    reached = cluster.Cluster(client)
    worker = next(iter(reached.workers()))
    task = reached.submit(worker, os.getpid)
    pid = reached.results([task], [worker])[0]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while worker in reached.workers():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(WorkersLost):
        reached._result(task, [worker])


@slow
def test_a_cluster_without_workers_is_not_waited_for_without_end(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = cluster.Cluster(client, wait_seconds=0.2)
    monkeypatch.setattr(reached, "workers", dict)
    with pytest.raises(SumFailed, match=r"no worker for 0\.2 seconds"):
        reached.gathered()


def test_another_version_on_a_worker_is_refused(
    folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "version", lambda _: "0.0.9")
    with pytest.raises(SettingsError, match=r"a worker has hedgerow .* the coordinator 0\.0\.9"):
        ClusterRows(ParquetFolder(folder, client, MIXED), MIXED, client)


def sampled(schema: Schema) -> Plan:
    settings = {"n_trees": 2, "max_depth": 2, "sample_rate": 0.5}
    privacy = Privacy(1.0, 0.0, accounting="pure")
    return plan_for(schema, privacy, "dp-xgboost", settings, seed=3)


def test_samples_are_drawn_on_workers(held: ClusterRows) -> None:
    plan, ledger = sampled(MIXED), Ledger.in_memory()
    with noise_off():
        model = grown(dask_federation(held, MIXED, plan.privacy, ledger), plan, ledger)
    assert len(model.trees) == 3
    verify(ledger)


def test_persons_whose_rows_lie_apart_are_not_sampled(client: Client, tmp_path: Path) -> None:
    table, schema = mixed_table(40, seed=5), per_person(2)
    write_files(tmp_path, {**table, "id": [str(i % 9) for i in range(40)]}, 3)
    rows_ = ClusterRows(ParquetFolder(tmp_path, client, schema), schema, client)
    ledger = Ledger.in_memory()
    plan = sampled(schema)
    with pytest.raises(SettingsError, match="sampled together"):
        grown(dask_federation(rows_, schema, plan.privacy, ledger), plan, ledger)
    assert not ledger.lines(kind="reserve")
