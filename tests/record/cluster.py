"""Times, memory and bytes on a Dask cluster: the table of docs/cluster.md."""

from __future__ import annotations

from tests.record.blocks import result, table


def scaling_block() -> str:
    lines = []
    for name, runs in result("dask_scaling")["cells"].items():
        rows, workers = name.split(" rows, ")
        one = min(runs, key=lambda run: run["wall"])
        sent = (one["bytes_to_workers"], one["bytes_from_workers"])
        lines.append(
            (f"{rows}, {workers.split()[0]}", f"{one['wall']:.0f}", f"{one['cpu']:.0f}",
             f"{one['peak_mb']:,.0f}", *(f"{size / 1e6:.1f}" for size in sent))
        )  # fmt: skip
    head = ("rows, workers", "seconds", "CPU seconds", "MB of all processes", "MB to workers",
            "MB from workers")  # fmt: skip
    return table(head, lines)


def blocks() -> dict[str, str]:
    return {"scaling": scaling_block()}
