"""Split methods: how the structure of a tree comes about. One file per method."""

from __future__ import annotations

from hedgerow.growing.splits.totally_random import totally_random

SPLITS = {"totally-random": totally_random}
