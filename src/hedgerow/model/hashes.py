"""Trees and models by name: trees by the hash of their chain, a model by its schema and chain.

Whoever is told a chain, such as a party that is asked about it, can tell which model it is of.
"""

from __future__ import annotations

from functools import lru_cache

from hedgerow.packing import digest

NO_TREES_YET = digest("hedgerow ensemble 1")


@lru_cache(maxsize=64)  # a coordinator and the parties of its process name the same trees
def longer(chain: str, tree: bytes) -> str:
    """The hash of a chain with one more tree."""
    return digest(chain, tree)


def model_hash(schema: str, length: int, chain: str, averaged: bool) -> str:
    """The hash of the model that these trees are under a schema."""
    return digest("hedgerow model 2", schema, str(length), chain, str(averaged))
