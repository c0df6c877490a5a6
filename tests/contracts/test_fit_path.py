"""The way from `fit` to the noise draw is the one that ARCHITECTURE.md lists, without detours."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import hedgerow
from hedgerow import PrivateBoostingClassifier
from hedgerow.privacy.noise.mechanisms import SecureSource

SOURCE = Path(hedgerow.__file__).parent
MAP = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")
SECTION = MAP.split("## From `fit` to the noise\n")[1].split("\n## ")[0]
LISTS = [
    [tuple(line.split()[:2]) for line in block.splitlines()]
    for block in re.findall(r"```text\n(.*?)```", SECTION, re.DOTALL)
]
SHARED = LISTS[0].index(("coordinator/gate.py", "Gate._ask")) + 1
Hop = tuple[str, str]


def hops_to_the_noise(fit: Callable[[], Any]) -> tuple[list[Hop], list[Any], list[str]]:
    """Calls of hedgerow's own code between `fit` and the first draw; all that came before it."""
    path: list[Hop] = []
    codes: list[Any] = []
    before: list[str] = []

    def watch(frame: FrameType | None, event: str, _: object) -> None:
        assert frame is not None
        if event != "call" or path:
            return
        before.append(frame.f_code.co_qualname)
        if frame.f_code is not SecureSource.gaussian.__code__:
            return
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(SOURCE):
                path.append((str(file.relative_to(SOURCE)), frame.f_code.co_qualname))
                codes.append(frame.f_code)
            frame = frame.f_back
        path.reverse()
        codes.reverse()
        sys.setprofile(earlier)

    fit()  # compiling would take minutes while it is watched
    earlier = sys.getprofile()
    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(earlier)
    return path, codes, before


def only_forwards(code: Any) -> bool:
    """Whether all that a function does is to call another one with what it was given."""
    tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0])))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    body = [
        statement
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    if len(body) != 1 or not isinstance(body[0], (ast.Return, ast.Expr)):
        return False
    value = body[0].value
    if isinstance(value, ast.YieldFrom):
        value = value.value
    given = [] if not isinstance(value, ast.Call) else [*value.args, *value.keywords]
    given = [one.value if isinstance(one, (ast.keyword, ast.Starred)) else one for one in given]
    return isinstance(value, ast.Call) and all(isinstance(one, ast.Name) for one in given)


@pytest.mark.parametrize("parties", [1, 3])
def test_a_fit_takes_the_way_that_the_map_shows(parties: int) -> None:
    X = np.linspace(-1, 1, 600).reshape(-1, 2)
    y, party = (X[:, 0] > 0).astype(int), np.array(list("abc"))[np.arange(300) % 3]
    model = PrivateBoostingClassifier(
        bounds=(-1, 1), classes=[0, 1], method="dp-tr-newton", n_trees=1
    )
    path, codes, before = hops_to_the_noise(
        lambda: model.fit(X, y, parties=party if parties > 1 else None)
    )
    listed = LISTS[0] if parties == 1 else LISTS[0][:SHARED] + LISTS[1]
    assert path == listed, "mend the list in ARCHITECTURE.md, or the detour"
    assert not [code.co_qualname for code in codes if only_forwards(code)]
    assert before.index("Gate._handshake") < before.index("Gate._ask")


def test_a_function_that_only_forwards_is_seen() -> None:
    def forwards(a: int, *rest: int) -> Any:
        """It only forwards."""
        return max(a, *rest)

    def works(a: int) -> Any:
        return max(a + 1, 2)

    assert only_forwards(forwards.__code__)
    assert not only_forwards(works.__code__)
