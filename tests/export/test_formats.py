"""Exports predict what hedgerow predicts, in the libraries that they are written for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.export import FORMATS, to_matrix
from tests.export.ensembles import LABELS, edge_cases, ensembles
from tests.export.runs import predictions

SOME = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("task", LABELS)
@SOME
@given(data=st.data())
def test_any_ensemble_predicts_the_same_in_every_format(
    name: str, task: str, data: st.DataObject, tmp_path: Path
) -> None:
    model = data.draw(ensembles(task))
    table = edge_cases(model.schema)
    found = predictions(name, model, to_matrix(model, table), tmp_path)
    assert np.abs(found - model.predict(table)).max() < 1e-5
