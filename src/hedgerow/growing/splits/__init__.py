"""Split methods: how the structure of a tree comes about."""

from __future__ import annotations

SPLITS = {
    "totally-random": "columns and cuts drawn at random, nothing asked",
    "partially-random": "one random cut per column, the best noisy gain wins",
    "histogram": "noisy histograms of every column and node, the best cut wins",
}
