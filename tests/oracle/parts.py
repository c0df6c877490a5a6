"""Parts of the reference: what one row adds, leaf values, candidates, persons; plain Python."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from typing import Any

Cuts = dict[int, tuple[int, ...]]


# What one row adds, in steps of 2**-bits.


def logistic(score: float, positive: bool, bits: int) -> tuple[int, int]:
    """(g, h): q truncated first, h floored from that q."""
    margin = score if positive else -score
    tail = math.exp(-abs(margin))
    q = tail / (1 + tail) if margin >= 0 else 1 / (1 + tail)
    one = 2**bits
    steps = math.floor(q * one)
    return (-steps if positive else steps), steps * (one - steps) // one


def softmax(scores: Sequence[float], own: int, bits: int) -> tuple[list[int], list[int]]:
    """(g, h) of every class from weights of 31 bits, their sum and floored quotients."""
    weights = [math.floor(math.exp(s - max(scores)) * (2**31 - 1)) for s in scores]
    one = 2**bits
    shares = [w * one // sum(weights) for w in weights]
    shares[own] = sum(shares) - shares[own]  # the row's own class carries all the others
    hessians = [p * (one - p) // one for p in shares]
    return [-p if k == own else p for k, p in enumerate(shares)], hessians


def squared(score: float, target: float, bits: int) -> tuple[int, int]:
    return math.trunc((min(max(score, 0.0), 1.0) - target) * 2**bits), 2**bits


def numbers_of(
    loss: str, update: str, scores: Sequence[float], target: float, bits: int, n_classes: int
) -> list[int]:
    one = 2**bits
    if update == "averaging":
        if loss == "squared":
            return [math.trunc(target * one), one]
        return [one if k == target else 0 for k in range(n_classes)]
    if loss == "squared":
        return [*squared(scores[0], target, bits)]
    if loss == "logistic":
        g, h = logistic(scores[0], target == 1, bits)
        return [g, h if update == "newton" else one]
    gs, hs = softmax(scores, int(target), bits)
    return [*gs, *hs] if update == "newton" else [*gs, one]


def grid_bits(sigma: float) -> int:
    """Fineness of the grid: the narrowest noise has 2**26 to 2**27 steps."""
    return min(31, max(16, 26 - math.floor(math.log2(sigma))))


# Leaf values.


def steps(
    sums: list[list[int]], bits: int, n_first: int, unit: float, scale: float, settings: Any
) -> list[list[float]]:
    """Clipped steps (leaf, output) from sums by leaf; the second part is held above its noise."""
    exact = [[number / 2**bits for number in leaf] for leaf in sums]
    floor, kept = settings.floor_deviations * unit / scale, 1.0
    if settings.shrinkage == "stein":
        energy = math.fsum(g**2 for leaf in exact for g in leaf[:n_first])
        kept = max(0.0, 1 - n_first * len(exact) * unit**2 / energy) if energy > 0 else 0.0
    values = []
    for leaf in exact:
        second = leaf[n_first:] * (n_first if len(leaf) == n_first + 1 else 1)
        row = []
        for g, h in zip(leaf[:n_first], second, strict=True):
            held = max(h, floor)
            weight = -(g * kept) / (held + settings.reg_lambda) if held > 0 else 0.0
            row.append(min(max(weight, -settings.leaf_clip), settings.leaf_clip))
        values.append(row)
    return values


def averages(sums: list[list[int]], bits: int, loss: str, floor: float) -> list[list[float]]:
    """Shares or means by leaf; what a leaf lacks to `floor` rows is filled up from the whole."""
    exact = [[number / 2**bits for number in leaf] for leaf in sums]
    if loss == "squared":
        rows = sum(count for _, count in exact)
        mean = min(max(sum(t for t, _ in exact) / max(rows, floor), 0.0), 1.0)
        found = []
        for total, count in exact:
            lack = max(floor - count, 0.0)
            found.append([min(max((total + lack * mean) / (count + lack), 0.0), 1.0)])
        return found
    whole = [sum(leaf[k] for leaf in exact) for k in range(len(exact[0]))]
    values = []
    for leaf in exact:
        lack = max(floor - sum(leaf), 0.0)
        shares = [
            (n + lack * (w / sum(whole))) / (sum(leaf) + lack)
            for n, w in zip(leaf, whole, strict=True)
        ]
        values.append(shares[1:] if len(shares) == 2 else shares)
    return values


def base_rate(targets: Sequence[float], loss: str, n_classes: int, bits: int, floor: float) -> Any:
    if loss == "squared":
        total = sum(math.trunc(t * 2**bits) for t in targets) / 2**bits
        return [(total + 0.5 * floor) / (len(targets) + floor)]
    counts = [max(float(sum(t == k for t in targets)), floor) for k in range(n_classes)]
    if loss == "logistic":
        return [math.log(counts[1] / counts[0])]
    return [math.log(n) - math.log(max(counts)) for n in counts]


# Candidates: indices into the edges of each ordered column.


def nearest(edges: Sequence[float], points: Sequence[float]) -> tuple[int, ...]:
    if not len(edges):
        return ()
    return tuple(
        sorted({min(range(len(edges)), key=lambda k: abs(float(edges[k]) - p)) for p in points})
    )


def first_cuts(schema: Any, edges: Sequence[Any], name: str, n_bins: int) -> Cuts:
    found: Cuts = {}
    for j, column in enumerate(schema.columns):
        if column.kind == "ordinal":
            assert len(column.categories) <= n_bins
            found[j] = tuple(range(len(column.categories) - 1))
        elif column.kind == "numeric":
            low, high = column.lower, column.upper
            points = [low + (high - low) * i / (n_bins - 1) for i in range(n_bins - 1)]
            if n_bins == 2:
                points = [(low + high) / 2]
            if name == "log":
                points = _log_points(low, high, n_bins - 1)
            found[j] = nearest(edges[j], points)
    return found


def _log_points(low: float, high: float, n: int) -> list[float]:
    def toward_zero(m: int) -> list[float]:
        return [2.0 ** (-17 * i / (m + 1)) for i in range(1, m + 1)]

    if low >= 0:
        return [low + (high - low) * p for p in toward_zero(n)]
    if high <= 0:
        return [high - (high - low) * p for p in toward_zero(n)]
    half = toward_zero(n // 2)
    return [low * p for p in half] + [0.0] * (n % 2) + [high * p for p in half]


def refined(
    column: Any, edges: Sequence[float], cuts: Sequence[int], hessians: Sequence[float], n_bins: int
) -> tuple[int, ...]:
    """Merge light bins, left to right; then halve the heaviest, older ones first.

    A bin with an equal share of its own is never merged with light ones before it. One with less
    than that is not halved, however many cuts are free.
    """
    held = [max(h, 0.0) for h in hessians]
    share = sum(held) / n_bins
    if share <= 0:
        return tuple(cuts)
    ends, heavy, mass, left = [*cuts, len(edges)], [], 0.0, -1
    for q, end in enumerate(ends):
        mass += held[q]
        alone = q + 1 < len(ends) and held[q + 1] >= share
        if mass >= share or alone or end == len(edges):
            heapq.heappush(heavy, (-mass, len(heavy), left, end))
            left, mass = end, 0.0
    chosen = {end for *_, end in heavy} - {len(edges)}
    age = len(heavy)
    heavy = [one for one in heavy if -one[0] >= share]
    heapq.heapify(heavy)
    while heavy and len(chosen) < n_bins - 1:
        mass, _, left, right = heapq.heappop(heavy)
        if right - left < 2:
            continue
        low = column.lower if left < 0 else float(edges[left])
        high = column.upper if right == len(edges) else float(edges[right])
        inner = range(left + 1, right)
        middle = min(inner, key=lambda k: abs(float(edges[k]) - (low + high) / 2))
        chosen.add(middle)
        for part in ((left, middle), (middle, right)):
            heapq.heappush(heavy, (mass / 2, age, *part))
            age += 1
    return tuple(sorted(chosen))


def equal_mass_cuts(counts: Sequence[float], deviation: float, n_bins: int) -> tuple[int, ...]:
    """Edges at equal mass: cells within 1.5 deviations are empty, heavy cells stand alone."""
    held = [0.0 if c < max(1.5 * deviation, 1e-9) else float(c) for c in counts]
    share = sum(held) / n_bins
    groups: list[list[Any]] = []  # [first cell, last cell, mass, whether it is never cut inside]
    for cell, mass in enumerate(held):
        if mass >= share and mass > 0:
            groups.append([cell, cell, mass, True])
        elif groups and not groups[-1][3]:
            groups[-1][1:3] = [cell, groups[-1][2] + mass]
        else:
            groups.append([cell, cell, mass, False])
    groups = [group for group in groups if group[2] > 0]
    while len(groups) > n_bins:
        least = min(group[2] for group in groups)
        at = max(1, next(i for i, group in enumerate(groups) if group[2] == least))
        light = groups.pop(at)
        groups[at - 1][1:] = [light[1], groups[at - 1][2] + light[2], True]
    edges = {a[1] if a[3] else b[0] - 1 for a, b in itertools.pairwise(groups)}
    free = [group for group in groups if not group[3]]
    mass, spare = sum(group[2] for group in free), n_bins - len(groups)
    quotas = [spare * group[2] / mass for group in free]
    n_cuts = [math.floor(q) for q in quotas]
    order = sorted(range(len(free)), key=lambda i: n_cuts[i] - quotas[i])
    for i in order[: spare - sum(n_cuts)]:
        n_cuts[i] += 1
    for (first, last, own, _), n in zip(free, n_cuts, strict=True):
        for part in range(1, n + 1):
            level = own * part / (n + 1) * (1 - 1e-9)
            reached = itertools.accumulate(held[first : last + 1])
            edges.add(first + next(i for i, total in enumerate(reached) if total >= level))
    return tuple(sorted(edge for edge in edges if 0 <= edge < len(counts) - 1))


# Persons.


def kept_rows(persons: Sequence[int], salt: int, k: int) -> list[int]:
    """Places of the rows that count: the k of each person with the smallest scrambled number."""
    own: dict[int, list[int]] = {}
    for place, person in enumerate(persons):
        own.setdefault(person, []).append(place)
    kept = []
    for person, places in own.items():
        ranked = sorted(
            range(len(places)), key=lambda i: _splitmix(person ^ _splitmix((i + salt) % 2**64))
        )
        kept += [places[i] for i in ranked[:k]]
    return sorted(kept)


def _splitmix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)
