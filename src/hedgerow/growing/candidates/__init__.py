"""Split candidates: which edges of the base grid a tree may cut at. One file per method."""

from __future__ import annotations

from hedgerow.growing.candidates.uniform import uniform

CANDIDATES = {"uniform": uniform}
