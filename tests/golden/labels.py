"""Every text that the source hashes, derives keys from or signs, found in its syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import hedgerow

_NUMBERED = re.compile(r"hedgerow [a-z ]+( \d+)?")
_HASHING = {"digest": "hash", "stream": "random stream"}


def labels() -> dict[str, list[str]]:
    """Texts by use. A changed label changes all that is hashed, sealed or drawn under it."""
    found: dict[str, set[str]] = {"numbered": set(), "hash": set(), "random stream": set()}
    for file in Path(hedgerow.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and (text := _text(node)) is not None:
                if _NUMBERED.fullmatch(text) and text[-1].isdigit():
                    found["numbered"].add(text)
            elif isinstance(node, ast.Call) and (use := _HASHING.get(_called(node))):
                found[use] |= set(_constants(node))
    return {use: sorted(texts) for use, texts in found.items()}


def _called(call: ast.Call) -> str:
    function = call.func
    return function.id if isinstance(function, ast.Name) else ""


def _constants(call: ast.Call) -> Iterator[str]:
    for argument in call.args:
        text = _text(argument)
        if text is not None:
            yield text


def _text(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None
