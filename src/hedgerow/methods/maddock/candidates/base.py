"""Candidates are indices into the edges of each column's base grid; none for categories."""

from __future__ import annotations

Cuts = list[tuple[int, ...]]
