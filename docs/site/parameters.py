"""How docstrings are read: after the colon of a parameter stands what it is, not its type."""

from __future__ import annotations

from typing import Any

from griffe import Docstring, Extension, Object


class Parameters(Extension):
    """Moves what stands after the colon to the description; types come from the signature."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            _reword(obj.docstring)


def _reword(docstring: Docstring) -> None:
    for section in docstring.parsed:
        if section.kind.value != "parameters":
            continue
        for parameter in section.value:
            if not parameter.description and parameter.annotation is not None:
                parameter.description = str(parameter.annotation)
                parameter.annotation = None
