"""THE ONLY place that draws noise.

Its random words come from a stream with a key of the operating system. `discrete_gaussian.py` is
the compiled loop of discrete Gaussians; discrete Laplaces, choices and noise for single values come
from exact Bernoulli draws (`bernoulli.py`; `randomisers.py` has the rules). Noise is added modulo
2**64.

Seeded and switched-off noise exist for tests only (`hedgerow.testing`); every vector that leaves
here carries the name of its source, and a model made with any but the secure one says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.privacy.noise import bernoulli, randomisers

MAX_BITS = 31  # so that the product of two grid values fits into 64 bits
MIN_BITS = 16
PREFERRED = 26  # log2 of the preferred sigma in grid steps
WIDEST = 2.0**50  # sigma in grid steps; far wider noise would not fit into 64-bit integers
WIDEST_DRAWN = 2.0**56  # the same of a party's noise, which may be wider than the slot's
WORDS = 20  # of the stream that a Gaussian takes, a little more than on average
AT_ONCE = 1024  # numbers for which a piece of the stream is made
LAPLACES_AT_ONCE = 2**18
# Scales of a discrete Laplace, in grid steps. Less than the least is no noise to speak of, and a
# float between 2^-10 and 2^40 is an integer below 2^53 over a power of two up to 2^62.
LEAST_SCALE = 1e-3
WIDEST_LAPLACE = 2.0**40
WIDEST_SHARE = 2.0**14  # of a party's share of it: drawing one takes time in proportion
WIDEST_CHOICE = 2**50  # steps of utility; whole numbers stay far below 2**63
LAPLACE_STEPS = 5  # log2 of the scale, in grid steps, that a number between counts gets
Sums = NDArray[np.uint64]


SELECTORS = ("permute-and-flip", "exponential")


class NoiseSource(Protocol):
    name: str

    def choose(self, utilities: Sequence[NDArray[np.int64]], scale: int, how: str) -> list[int]:
        """Of each list the place of one utility, large ones likely: see `choose`."""
        ...

    def gaussian(self, size: int, sigma: float | NDArray[np.float64]) -> NDArray[np.int64]:
        """Discrete Gaussians of one deviation, or each of its own."""
        ...

    def laplace(self, size: int, scale: float, shares: int = 1) -> NDArray[np.int64]:
        """Draws of which any `shares` add up to a discrete Laplace; that itself for one."""
        ...

    def below(self, size: int, limit: int) -> NDArray[np.uint64] | None:
        """Uniform whole numbers below `limit`, or nothing where noise is switched off."""
        ...


class SecureSource:
    """Exact samplers over the operating system's randomness."""

    name = "secure"

    def gaussian(self, size: int, sigma: float | NDArray[np.float64]) -> NDArray[np.int64]:
        """Discrete Gaussians whose deviation is the next whole number from `sigma` up."""
        if size == 0:
            return np.zeros(0, np.int64)
        # Wider draws might not fit. A party's share may be wider than the slot's sigma, but never
        # so wide.
        for one in (float(np.min(sigma)), float(np.max(sigma))):  # NaN if any is
            if not 0 < one <= WIDEST_DRAWN:
                raise PlanError(f"noise of {one:.3g} grid steps cannot be drawn; nothing was sent")
        return _gaussians(np.broadcast_to(np.ceil(sigma), size).astype(np.int64))

    def choose(self, utilities: Sequence[NDArray[np.int64]], scale: int, how: str) -> list[int]:
        if how == "exponential":
            return bernoulli.Sampler().in_proportion([one.max() - one for one in utilities], scale)
        # Permute and flip: in random order, each place is accepted with exp((u - best) / scale),
        # and the first that is accepted is chosen. All may as well be drawn at once: the first
        # success of a random order is any of the successes, each as likely as another. The best
        # always succeeds.
        gaps = np.concatenate([one.max() - one for one in utilities])
        sampler = bernoulli.Sampler()
        ends = np.cumsum([len(one) for one in utilities])[:-1]
        chosen = []
        for accepted in np.split(sampler.exp(gaps, scale), ends):
            successes = np.flatnonzero(accepted)
            chosen.append(int(successes[int(sampler.below(1, len(successes))[0])]))
        return chosen

    def laplace(self, size: int, scale: float, shares: int = 1) -> NDArray[np.int64]:
        if size == 0:
            return np.zeros(0, np.int64)
        if not LEAST_SCALE <= scale <= WIDEST_LAPLACE:
            raise PlanError(f"Laplace noise of scale {scale:.3g} cannot be drawn; nothing was sent")
        ratio = float(scale).as_integer_ratio()  # what the float is, exactly
        sampler = bernoulli.Sampler()
        sizes = [min(LAPLACES_AT_ONCE, size - i) for i in range(0, size, LAPLACES_AT_ONCE)]
        if shares == 1:
            return np.concatenate([sampler.laplaces(part, *ratio) for part in sizes])
        parts = [
            _negative_binomials(sampler, part, ratio, shares)
            - _negative_binomials(sampler, part, ratio, shares)
            for part in sizes
        ]
        return np.concatenate(parts)

    def below(self, size: int, limit: int) -> NDArray[np.uint64]:
        return bernoulli.Sampler().below(size, limit)


def _negative_binomials(
    sampler: bernoulli.Sampler, size: int, ratio: tuple[int, int], shares: int
) -> NDArray[np.int64]:
    """NB(1/shares): what one of `shares` equal parts of a geometric number is.

    Parts of shape 1/m that add up to a geometric g are, given g, what m colours of a Polya urn
    that starts with a weight of 1/m each show after g draws. So: draw g, then run the urn for
    one colour. Draw number i takes it with probability (1/m + x) / (1 + i), x times so far,
    which is (1 + m x) / (m + m i) in whole numbers: exact, no float is involved.
    """
    draws = sampler.geometrics(size, *ratio)
    taken = np.zeros(size, np.int64)
    active = np.flatnonzero(draws > 0)
    step = 0
    while len(active):
        ball = sampler.below(len(active), shares * (1 + step))
        taken[active] += ball < np.uint64(1) + np.uint64(shares) * taken[active].view(np.uint64)
        step += 1
        active = active[draws[active] > step]
    return taken


def _gaussians(sigmas: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw numbers, each of its own deviation, from one sampler's words.

    Words that did not suffice for a number come again with more behind them, so every number is
    what the endless stream says, and none shares a word with another.
    """
    from hedgerow.privacy.noise import discrete_gaussian  # loads Numba

    sampler = bernoulli.Sampler()
    size, done = len(sigmas), 0
    out, words = np.empty(size, np.int64), np.zeros(0, np.uint64)
    while done < size:
        wanted = WORDS * min(size - done, AT_ONCE) + 64
        words = np.concatenate([words, sampler.words(wanted)])
        done, used = discrete_gaussian.gaussians(words, sigmas, out, done)
        if done == discrete_gaussian.OUT_OF_RANGE:
            raise PlanError("a draw of noise was out of range; nothing was sent")
        words = words[used:]
    return out


_SECURE = SecureSource()
_SOURCE: ContextVar[NoiseSource] = ContextVar("noise source", default=_SECURE)


def gaussian_loop() -> object:
    """The compiled loop of the sampler, for whoever keeps compiled loops elsewhere."""
    from hedgerow.privacy.noise import discrete_gaussian

    return discrete_gaussian.gaussians


def source_name() -> str:
    """Name of the source that noise is drawn from now: "secure" outside of tests."""
    return _SOURCE.get().name


@contextmanager
def noise_from(source: NoiseSource) -> Iterator[None]:
    """Draw from another source inside the block. For `hedgerow.testing` only."""
    token = _SOURCE.set(source)
    try:
        yield
    finally:
        _SOURCE.reset(token)


def bits_for(sigma: float) -> int:
    """Grid fineness 2**-bits at which `sigma` (in units of the answer) has enough steps."""
    bits = PREFERRED - math.floor(math.log2(sigma))
    return min(MAX_BITS, max(MIN_BITS, bits))


def check_sigma(sigma_steps: float, floor: int) -> None:
    """Refuse noise so narrow that its discreteness would not be covered by the accounting."""
    least = 2.0**floor
    if sigma_steps > WIDEST:
        raise PlanError(
            f"the noise would have a deviation of {sigma_steps:.3g} grid steps, more than can be "
            "drawn. Nothing was asked. epsilon is too small for this plan."
        )
    if not math.isfinite(sigma_steps) or sigma_steps < least:
        raise PlanError(
            f"the noise would have a deviation of {sigma_steps:.3g} grid steps; at least "
            f"{least:.3g} are needed. epsilon is too large for a guarantee of this kind."
        )


def can_draw(sigma_steps: float, share: float) -> bool:
    """Whether a party can draw its share of such noise; with many rows it may be wider."""
    return math.ceil(sigma_steps * math.sqrt(share) * (1 + 2.0**-50)) <= WIDEST_DRAWN


def add_gaussian(
    total: Sums, blocks: Sequence[int], sigmas: Sequence[float], share: float = 1.0
) -> Sums:
    """Add discrete Gaussian noise of deviation ``sigma * sqrt(share)`` to each block, mod 2**64.

    `blocks` are block lengths, `sigmas` their deviations in grid steps. A party's share of
    ``1 / (S - c)`` makes the shares of any S - c honest parties add up to sigma^2, or a little
    more: every deviation is rounded up to whole steps, and by more than products of floats lose.
    """
    source = _SOURCE.get()
    part = 1.0 if share == 1.0 else math.sqrt(share) * (1 + 2.0**-50)
    each = np.repeat(np.array(sigmas, np.float64) * part, blocks)  # (number,)
    noise = source.gaussian(len(each), each)
    if noise.shape != total.shape:
        raise PlanError("the noise does not have the shape of the sum")
    return total + noise.view(np.uint64)


def add_laplace(
    total: Sums, blocks: Sequence[int], scales: Sequence[float], shares: int = 1
) -> Sums:
    """Add discrete Laplace noise to each block, mod 2**64; or a party's share of it.

    With `shares` = S - c the noise of any S - c honest parties adds up to an exact discrete Laplace
    of that scale, and whatever the others add is post-processing.
    """
    source = _SOURCE.get()
    parts = zip(blocks, scales, strict=True)
    noise = np.concatenate(
        [source.laplace(size, scale, shares) for size, scale in parts] or [np.zeros(0, np.int64)]
    )
    if noise.shape != total.shape:
        raise PlanError("the noise does not have the shape of the sum")
    return total + noise.view(np.uint64)


def choose(utilities: Sequence[NDArray[np.int64]], scale: int, how: str) -> list[int]:
    """Choose one place of each list by its utility, epsilon-privately.

    With utilities that one unit moves apart by at most R, scale = R / epsilon is epsilon-private:

    - "exponential": in proportion to exp(u / scale). A table with one unit more multiplies the
      weight of each by a factor between e^(a/scale) and e^((a + R)/scale), a the least change, and
      their sum by at least the former: each chance by at most e^(R/scale).
    - "permute-and-flip" (McKenna and Sheldon 2020): no worse at any utilities, and often better. It
      is epsilon-private where it accepts with exp(epsilon (u - best) / (2 D)) if each utility
      moves by at most D; adding a constant to all of them changes nothing, so D = R / 2 will do.
    """
    if how not in SELECTORS or not 1 <= scale <= WIDEST_CHOICE or not utilities:
        raise PlanError(f"a choice of scale {scale} by {how!r} cannot be drawn; nothing was sent")
    if any(len(one) == 0 for one in utilities):
        raise PlanError("there is nothing to choose from; nothing was sent")
    return _SOURCE.get().choose(utilities, scale, how)


def perturb(values: NDArray[np.float64], epsilon: float, mechanism: str) -> NDArray[np.float64]:
    """Add to each of the values, between -1 and 1, noise of its own: each is epsilon-private.

    The mean of an output is its input. `randomisers.py` has the mechanisms and their proofs.
    """
    values = np.asarray(values, np.float64)
    found = _perturbed(values.reshape(-1), randomisers.rule_for(mechanism, epsilon))
    return found.reshape(values.shape)


def _perturbed(values: NDArray[np.float64], rule: randomisers.Rule) -> NDArray[np.float64]:
    source = _SOURCE.get()
    if isinstance(rule, randomisers.Hybrid):
        first, second = rule.parts
        drawn = source.below(len(values), rule.limit)
        if drawn is None:
            return first.exact(first.cells(values))
        by_first, outputs = drawn < np.uint64(rule.share), np.empty(len(values))
        outputs[by_first] = _perturbed(values[by_first], first)
        outputs[~by_first] = _perturbed(values[~by_first], second)
        return outputs
    cells = rule.cells(values)
    if isinstance(rule, randomisers.Laplace):
        return rule.outputs(cells, source.laplace(len(cells), float(rule.scale)))
    drawn = source.below(len(cells), rule.limit)
    return rule.exact(cells) if drawn is None else rule.outputs(cells, drawn)


def randomised_labels(labels: NDArray[np.int64], classes: int, epsilon: float) -> NDArray[np.int64]:
    """Labels 0, ..., classes - 1 by randomised response: epsilon-private one by one.

    `randomisers.LabelResponse.unbiased_weights` undoes the bias of what is computed from them.
    """
    rule = randomisers.LabelResponse(classes, epsilon)
    labels = np.asarray(labels, np.int64)
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        raise PlanError(f"a label is not one of the {classes} classes; nothing was sent")
    drawn = _SOURCE.get().below(len(labels), rule.limit)
    return labels.copy() if drawn is None else rule.outputs(labels, drawn)


def laplace_deviation(scale: float) -> float:
    """Standard deviation of the discrete Laplace with P(x) in proportion to exp(-|x| / scale)."""
    ratio = math.exp(-1 / scale)
    return math.sqrt(2 * ratio) / (1 - ratio)


def laplace_bits(scale: float) -> int:
    """Grid fineness at which a number that is no count is fine beside noise of this scale."""
    return min(MIN_BITS, max(0, LAPLACE_STEPS - math.floor(math.log2(scale))))
