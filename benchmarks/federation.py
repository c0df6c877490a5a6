"""What does a federation of separate processes cost in time and bytes?

Trains the default method on adult, dealt out over 3, 10 and 20 parties that run as processes of
their own over gRPC on this machine, once with the secure sum and once with a trusted
coordinator, and beside it over the same parties in one process, in the same run. Prints seconds to
the first round, seconds a round, and bytes a party beside what the plan predicted; writes
benchmarks/results/federation.json. All parties share this machine's cores, so more parties compute
longer here than they would apart.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from hedgerow.coordinator.federation import Federation
from hedgerow.coordinator.gate import Gate
from hedgerow.coordinator.traffic import traffic
from hedgerow.data.schema import Schema
from hedgerow.data.tables import rows_of
from hedgerow.deployment.trial import Sites, parts_of
from hedgerow.engines.local import local_federation
from hedgerow.engines.relay import RelayEngine
from hedgerow.methods.registry import method_named, plan_for
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy

RESULT = Path(__file__).parent / "results" / "federation.json"
TO_FIRST_ROUND, EXTRA_A_ROUND = 20.0, 0.1  # seconds, goals for three parties


def trained(federation: Federation, schema: Schema, trust: str, n: int) -> dict[str, Any]:
    """One run of the default method; seconds of it, and what the wire carried."""
    minimum = federation.roster.minimum
    privacy = Privacy(1.0, 1e-5, trust, minimum_parties=minimum)  # type: ignore[arg-type]
    plan = plan_for(schema, privacy, "auto", {}, seed=1)
    ledger, marks = Ledger.in_memory(), [time.monotonic()]
    gate = Gate(federation, plan, ledger, observe=lambda _: marks.append(time.monotonic()))
    method_named("auto").grow(gate)
    predicted = traffic(plan, schema, federation.names)
    return {
        "seconds": marks[-1] - marks[0],
        "first_round": marks[1] - marks[0],
        "rounds": federation.rounds,
        "sent": federation.bytes_from_parties / n,
        "received": federation.bytes_to_parties / n,
        "sent_predicted": predicted.sent,
        "received_predicted": predicted.received,
    }


def measure(table: Any, schema: Schema, schema_file: Path, n: int, trust: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as name:
        folder, tables, rows = Path(name), {}, {}
        for i, part in enumerate(parts_of(table, schema, n)):
            tables[f"party-{i + 1}"] = folder / f"part-{i + 1}.parquet"
            pq.write_table(part, tables[f"party-{i + 1}"])
            rows[f"party-{i + 1}"] = rows_of(part, schema)
        trained(local_federation(rows, schema, trust=trust), schema, trust, n)  # compiles
        local = trained(local_federation(rows, schema, trust=trust), schema, trust, n)
        began = time.monotonic()
        with Sites.make(folder, tables, schema_file, trust) as sites:
            up = time.monotonic() - began
            site = sites.by_name["coordinator"]
            began = time.monotonic()
            with RelayEngine(site.carrier_socket, site.roster().names, "") as engine:
                assert not engine.await_parties(300.0)
                joined = time.monotonic() - began
                federation = Federation(engine, schema, site.roster(), site.identity())
                apart = trained(federation, schema, trust, n)
                again = trained(
                    Federation(engine, schema, site.roster(), site.identity()), schema, trust, n
                )
    return {
        "parties": n,
        "trust": trust,
        "sites_up": up,
        "to_first_round": joined + apart["first_round"],
        "local": local,
        "apart": apart,
        "apart_again": again,
        "extra_a_round": (again["seconds"] - local["seconds"]) / again["rounds"],
    }


def show(found: list[dict[str, Any]], console: Console) -> None:
    shown = Table(title="Default method, adult, separate processes over gRPC")
    for column in (
        "parties",
        "secure sum",
        "s to first round",
        "s local",
        "s apart (1st, 2nd run)",
        "rounds",
        "extra s a round",
        "kB sent (plan)",
        "kB received (plan)",
    ):
        shown.add_column(column, justify="right")
    for row in found:
        local, apart, again = row["local"], row["apart"], row["apart_again"]
        shown.add_row(
            str(row["parties"]),
            "on" if row["trust"] == "parties" else "off",
            f"{row['to_first_round']:.1f}",
            f"{local['seconds']:.2f}",
            f"{apart['seconds']:.2f}, {again['seconds']:.2f}",
            str(again["rounds"]),
            f"{row['extra_a_round']:.3f}",
            f"{again['sent'] / 1e3:.0f} ({again['sent_predicted'] / 1e3:.0f})",
            f"{again['received'] / 1e3:.0f} ({again['received_predicted'] / 1e3:.0f})",
        )
    console.print(shown)
    for row in found:
        if row["parties"] == 3:
            for what, value, goal in (
                ("seconds to the first round", row["to_first_round"], TO_FIRST_ROUND),
                ("seconds beyond local a round", row["extra_a_round"], EXTRA_A_ROUND),
            ):
                verdict = "yes" if value <= goal else "no "
                on = "on" if row["trust"] == "parties" else "off"
                console.print(f"{verdict} {what}, secure sum {on}: {value:.3f}, goal {goal:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[3, 10, 20])
    parser.add_argument("--trusts", nargs="+", default=["parties", "coordinator"])
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if "HEDGEROW_DATA" not in os.environ:
        sys.exit("set HEDGEROW_DATA to the folder with adult.parquet and adult.toml")
    folder = Path(os.environ["HEDGEROW_DATA"])
    schema, table = Schema.read(folder / "adult.toml"), pq.read_table(folder / "adult.parquet")
    console, found = Console(), []
    for n in options.parties:
        for trust in options.trusts:
            found.append(measure(table, schema, folder / "adult.toml", n, trust))
            console.print(f"{n} parties, trust in {trust}: done", style="dim")
    show(found, console)
    values = {
        "command": "python benchmarks/federation.py " + " ".join(sys.argv[1:]),
        "date_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": table.num_rows,
        "cores": os.cpu_count(),
        "measured": found,
    }
    options.out.write_text(json.dumps(values, indent=1) + "\n")
    console.print(f"written to {options.out}")


if __name__ == "__main__":
    main()
