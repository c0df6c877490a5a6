"""A model is verified, and a run resumed, where libraries choose other loops than where it began.

OpenBLAS, NumPy and the C library choose theirs by the processor; environment variables make them
choose those of an old one, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from hedgerow.audit.verification import verify_model
from hedgerow.coordinator.gate import Gate
from hedgerow.engines.local import local_federation
from hedgerow.evaluation import Evaluation, evaluate, evaluation_plan
from hedgerow.methods.registry import METHODS, plan_for
from hedgerow.model.ensemble import Ensemble
from hedgerow.privacy.accounting.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.settings import Privacy
from hedgerow.testing import seeded
from tests.golden.runs import CASES, PURE, SMALL, TRUSTS
from tests.golden.tables import SCHEMAS, dealt

EPSILON = 80.0  # so that rules see signal enough for every stage
DISPATCHED = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
OLD = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": " ".join(DISPATCHED),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL",
}


def trained(folder: Path, method: str, task: str) -> None:
    """A model on a ledger of its own, and its private evaluation on another one."""
    schema, pure = SCHEMAS[task], method in PURE
    trust = TRUSTS.get(method, "coordinator")
    accounting, delta = ("pure", 0.0) if pure else ("exact", 1e-6)
    privacy = Privacy(EPSILON, delta, trust, accounting=accounting)
    uses = METHODS[method].uses
    settings = {name: value for name, value in SMALL.items() if name in uses}
    plan = plan_for(schema, privacy, method, settings=settings, seed=5)
    with Ledger.open(folder / f"{method}.{task}.ledger") as ledger:
        federation = local_federation(dealt(schema), schema, ledger, trust=trust)
        model = METHODS[method].grow(Gate(federation, plan, ledger))
    model.save(folder / f"{method}.{task}.hedge")


def evaluated(folder: Path, task: str) -> Evaluation:
    """The private evaluation of the default method's model: begun, or gone on with."""
    model = Ensemble.load(folder / f"auto.{task}.hedge")
    kept, schema = folder / f"{task}.plan.toml", SCHEMAS[task]
    if not kept.exists():
        evaluation_plan(model, Privacy(EPSILON, 1e-6, "coordinator")).write(kept)
    with Ledger.open(folder / f"{task}.evaluation.ledger") as ledger:
        federation = local_federation(dealt(schema), schema, ledger, trust="coordinator")
        return evaluate(Gate(federation, Plan.read(kept), ledger, start=model), model)


def check(folder: Path) -> None:
    """Verify every model and go on with every evaluation; prints what does not hold."""
    wrong = []
    for method, task in CASES:
        name = f"{method}.{task}"
        try:
            verify_model(folder / f"{name}.hedge", [folder / f"{name}.ledger"])
        except Exception as error:
            wrong.append(f"{name}: {error}")
    for task in SCHEMAS:
        try:
            evaluated(folder, task)
        except Exception as error:
            wrong.append(f"evaluation of {task}: {error}")
    some = np.exp(np.linspace(-3, 3, 1000)), np.linspace(0.1, 1, 961).reshape(31, 31)
    print(
        json.dumps({"wrong": wrong, "exp": some[0].tolist(), "dot": (some[1] @ some[1]).tolist()})
    )


@pytest.mark.skipif(not DISPATCHED, reason="NumPy has one kind of loops on this processor")
def test_models_are_verified_and_runs_go_on_where_last_bits_differ(tmp_path: Path) -> None:
    with seeded(7):
        for method, task in CASES:
            trained(tmp_path, method, task)
        for task in SCHEMAS:
            evaluated(tmp_path, task)
    found = {}
    for name, environment in {"here": {}, "old": OLD}.items():
        command = [sys.executable, "-m", "tests.audit.test_other_processors", str(tmp_path)]
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
    assert found["here"]["wrong"] == []
    assert found["old"]["wrong"] == []
    bits = [any(found["old"][of] != found["here"][of] for of in ("exp", "dot"))]
    assert any(bits), "the environment changed nothing, so this test shows nothing"


if __name__ == "__main__":
    check(Path(sys.argv[1]))
