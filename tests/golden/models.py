"""Files of models: `.hedge`, parts of vertical models, statements, evaluations, exports."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError
from hedgerow.export import FORMATS as EXPORTS
from hedgerow.methods.fedxgboost.model import Part, merged
from hedgerow.model.ensemble import Ensemble
from tests.golden import runs
from tests.golden.tables import PLAIN, SCHEMAS, plain_table, table
from tests.golden.text import Files, as_json
from tests.golden.trained import measured, model_of, parts_of, similar, trained


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


def kept() -> Files:
    """What parties keep of SimFL's hashes and similar rows."""
    return {f"{party}.kept": data for party, data in runs.similarity_kept().items()}


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
