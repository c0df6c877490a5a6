"""Scores of canaries from what a run released: how well each one's coin can be told.

A canary's contribution to every release is known, and so is the noise; made-up rows are public, so
what they add is taken off. Two scores: one for whoever knows every coin but one (the guarantee's
own attacker), one for whoever knows none (needed by a bound that holds for any mechanism).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hedgerow.audit.bounds import BlockNoise
from hedgerow.audit.made_up import Canaries
from hedgerow.audit.recorder import Record, Transcript
from hedgerow.data.schema import Schema
from hedgerow.data.tables import Rows

Floats = NDArray[np.float64]
Coins = NDArray[np.bool_]  # (canary, copy): whether that copy is in the table


@dataclass(eq=False)
class Scores:
    """What releases say of each canary, added up over a run."""

    coins: Coins
    own: Floats  # (canary,): inner product of its contribution with what nobody else explains
    squares: Floats  # (canary,): squared length of all it contributes, in units of the noise
    gram: Floats  # (canary, canary): inner products of contributions
    seen: Floats  # (canary,): the same product, with all coins unknown
    blocks: list[BlockNoise] = field(default_factory=list)
    n_releases: int = 0

    @staticmethod
    def none_yet(coins: Coins) -> Scores:
        n = len(coins)
        return Scores(coins, np.zeros(n), np.zeros(n), np.zeros((n, n)), np.zeros(n))

    def add(self, named: Sequence[tuple[str, int]], rest: Floats, adds: sparse.csr_array) -> None:
        """One release in blocks of these names and sizes.

        `rest` is what made-up rows leave of it, `adds` (canary, coordinate) what canaries
        contribute, both in units of the stated noise.
        """
        self.n_releases += 1
        inside = self.coins.sum(axis=1)
        half = self.coins.shape[1] / 2
        noise = rest - adds.T @ inside
        self.own += adds @ noise
        self.gram += (adds @ adds.T).toarray()
        self.seen += adds @ (rest - adds.T @ np.full(len(inside), half))
        squared, first = adds.power(2).tocsc(), 0
        for name, size in named:
            stop = first + size
            squares = np.asarray(squared[:, first:stop].sum(axis=1)).ravel()
            energy = float(noise[first:stop] @ noise[first:stop])
            self.blocks.append(BlockNoise(name, size, energy, squares))
            self.squares += squares
            first = stop

    def known_others(self) -> Floats:
        """(canary, copy): for whoever knows all coins but that one, in units of the noise.

        In expectation the length of what the canary contributes if it is in, and 0 if not.
        """
        length = np.sqrt(self.squares)
        length[length == 0] = 1.0
        return (self.own[:, None] + self.coins * self.squares[:, None]) / length[:, None]

    def from_output_alone(self) -> Floats:
        """(canary,): the least-squares guess of how many copies are in, less their half.

        Copies are alike, so they have one score. Coins of the others are noise of known covariance.
        """
        spread = self.coins.shape[1] / 4  # the variance of how many copies are in
        whole = spread * self.gram + np.eye(len(self.gram))
        return np.asarray(spread * np.linalg.solve(whole, self.seen))


def scores_of(transcript: Transcript, canaries: Canaries, base: Rows, coins: Coins) -> Scores:
    """Score canaries in a run over made-up rows and the copies that the coins put in."""
    schema, scores = transcript.schema, Scores.none_yet(coins)
    both = zip(transcript.with_scores(canaries.rows), transcript.with_scores(base), strict=True)
    for (record, of_canaries), (_, of_base) in both:
        query, bits, unit = record.query, record.release.bits, record.deviations
        rest = (record.release.total - query.answer(base, of_base, schema, bits)) / unit
        answers = answers_of(record, canaries, of_canaries, schema)
        scores.add(record.named_blocks(), rest, _sparse(answers, len(unit), unit))
    return scores


def local_scores_of(
    transcript: Transcript,
    heard: Sequence[Sequence[NDArray[np.int64]]],
    canaries: Canaries,
    others: Canaries,
    coins: Coins,
) -> Scores:
    """Score canaries that are parties of one unit each: it, or another one in its place.

    `heard` has for each release what every party sent, noise included: everybody sees that where
    nobody is trusted. So a canary's score comes from its own party's messages, with noise that no
    other canary shares. `others` are what stands in place of canaries whose coin says so.
    """
    schema, scores = transcript.schema, Scores.none_yet(coins)
    played = (transcript.with_scores(canaries.rows), transcript.with_scores(others.rows))
    both = zip(*played, heard, strict=True)
    for (record, of_canaries), (_, of_others), sent in both:
        unit = record.deviations / np.sqrt(len(sent))  # of one party: its rows are its noise
        known = answers_of(record, others, of_others, schema)
        answers = answers_of(record, canaries, of_canaries, schema)
        places = _by_block(record, len(sent))
        rest, adds = np.zeros(places.size), []
        for i, (message, before, after) in enumerate(zip(sent, known, answers, strict=True)):
            rest[places[i]] = (message - before) / unit
            moved = np.zeros(places.size)
            moved[places[i]] = (after - before) / unit
            adds.append(moved)
        named = [(name, size * len(sent)) for name, size in record.named_blocks()]
        scores.add(named, rest, sparse.csr_array(np.array(adds)))
    return scores


def _by_block(record: Record, n_parties: int) -> NDArray[np.int64]:
    """(party, coordinate): places such that a block of all parties lies together."""
    parts, first = [], 0
    for _, size in record.named_blocks():
        parts.append(first + np.arange(n_parties * size).reshape(n_parties, size))
        first += n_parties * size
    return np.hstack(parts)


def answers_of(
    record: Record, canaries: Canaries, scores: Floats, schema: Schema
) -> Iterator[NDArray[np.int64]]:
    """What each canary alone adds to a release, in steps of its grid: (coordinate,) each."""
    ends = np.searchsorted(canaries.unit, np.arange(canaries.n_units + 1))
    for first, stop in pairwise(ends.tolist()):
        index = np.arange(first, stop)
        rows = canaries.rows.take(index)
        yield record.query.answer(rows, scores[index], schema, record.release.bits)


def _sparse(
    answers: Iterable[NDArray[np.int64]], n_coordinates: int, unit: Floats
) -> sparse.csr_array:
    """(canary, coordinate), in units of the noise."""
    places, values, starts = [np.zeros(0, np.int64)], [np.zeros(0)], [0]
    for answer in answers:
        there = np.flatnonzero(answer)
        places.append(there)
        values.append(answer[there] / unit[there])
        starts.append(starts[-1] + len(there))
    parts = (np.concatenate(values), np.concatenate(places), np.array(starts))
    return sparse.csr_array(parts, (len(starts) - 1, n_coordinates))
