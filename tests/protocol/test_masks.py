"""Masks cancel over a complete set, and only for exactly the same context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hedgerow.errors import FormatError
from hedgerow.protocol.identity import Announcement, Identity, signed_by
from hedgerow.protocol.joined import Joined, SumSet
from hedgerow.protocol.masks import Context, MaskKeys, add_modulo, derived

NAMES = ("a", "b", "c", "d")
KEYS = {name: MaskKeys() for name in NAMES}
SIGNERS = {name: Identity() for name in NAMES}
SIGNED = {
    name: Announcement(name, 1, 1, KEYS[name].public, "plan", "schema", "roster").signed(
        SIGNERS[name]
    )
    for name in NAMES
}


def among(names: tuple[str, ...], signed: Mapping[str, Announcement] = SIGNED) -> SumSet:
    return SumSet(Joined(signed), names, colluding=1)


CONTEXT = Context("plan", "schema", 3, 1, "request", among(NAMES))


def total(contexts: dict[str, Context] | None = None, size: int = 50) -> np.ndarray:  # type: ignore[type-arg]
    contexts = contexts or dict.fromkeys(NAMES, CONTEXT)
    return add_modulo([KEYS[n].mask(n, contexts[n], size) for n in contexts[NAMES[0]].among.names])


@pytest.mark.parametrize("salt", [bytes(32), b"salt"])
def test_keys_are_derived_as_the_standard_says(salt: bytes) -> None:
    for secret, info in ((b"secret", b""), (bytes(32), b"what it is for" * 100)):
        expected = HKDF(SHA256(), 32, salt, info).derive(secret)
        assert derived(secret, salt, info) == expected
    assert derived(b"secret", bytes(32), b"") == HKDF(SHA256(), 32, None, b"").derive(b"secret")


def test_masks_cancel_over_the_complete_set() -> None:
    assert not total().any()
    fewer = replace(CONTEXT, among=among(("a", "c", "d")))
    assert not total(dict.fromkeys(NAMES, fewer)).any()


def test_masks_do_not_cancel_when_one_party_is_left_out() -> None:
    left = [KEYS[n].mask(n, CONTEXT, 50) for n in NAMES[1:]]
    assert len(np.unique(add_modulo(left))) == 50


@pytest.mark.parametrize("top", [0, 0x80])
def test_a_key_that_two_parties_announce_unmasks_nobody_between_them(top: int) -> None:
    """c announces the key of a: b would add and subtract one stream, were it not for the pair.

    With the top bit, which X25519 ignores, it is the same key and looks like another.
    """
    key = bytearray.fromhex(KEYS["a"].public)
    key[-1] |= top
    assert KEYS["b"].agree(key.hex()) == KEYS["b"].agree(KEYS["a"].public)
    copied = Announcement("c", 1, 1, key.hex(), "plan", "schema", "roster")
    signed = {**SIGNED, "c": copied.signed(SIGNERS["c"])}
    context = replace(CONTEXT, among=among(("a", "b", "c"), signed))
    assert np.all(KEYS["b"].mask("b", context, 50) != 0)


@pytest.mark.parametrize(
    "other",
    [
        {"plan": "x"}, {"schema": "x"}, {"slot": 4}, {"attempt": 2}, {"request": "x"},
        {"among": among(("a", "b", "c"))},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_every_part_of_the_context_changes_the_whole_mask(other: dict) -> None:  # type: ignore[type-arg]
    one = KEYS["a"].mask("a", CONTEXT, 50)
    two = KEYS["a"].mask("a", replace(CONTEXT, **other), 50)
    assert not np.any(one == two)
    if "among" not in other:
        mixed = {**dict.fromkeys(NAMES, CONTEXT), "c": replace(CONTEXT, **other)}
        assert np.all(total(mixed) != 0)


def test_a_new_announcement_of_anyone_changes_the_mask() -> None:
    again = replace(SIGNED["d"], boot=2).signed(SIGNERS["d"])
    few = ("a", "b", "c")  # d is not even in the sum
    one = KEYS["a"].mask("a", replace(CONTEXT, among=among(few)), 50)
    renewed = among(few, {**SIGNED, "d": again})
    two = KEYS["a"].mask("a", replace(CONTEXT, among=renewed), 50)
    assert not np.any(one == two)


def test_a_pair_alone_knows_its_stream() -> None:
    """What b and c share is unknown to a: two sets that differ in it differ everywhere."""
    stranger = MaskKeys()
    signed = {**SIGNED, "c": replace(SIGNED["c"], key=stranger.public).signed(SIGNERS["c"])}
    one = KEYS["b"].mask("b", CONTEXT, 50)
    two = KEYS["b"].mask("b", replace(CONTEXT, among=among(NAMES, signed)), 50)
    assert not np.any(one == two)


@pytest.mark.parametrize("key", ["00" * 32, "01" + "00" * 31, "zz", "", "00" * 31])
def test_a_key_that_gives_no_secret_is_refused(key: str) -> None:
    signed = {**SIGNED, "b": replace(SIGNED["b"], key=key)}
    with pytest.raises(FormatError, match="X25519"):
        KEYS["a"].mask("a", replace(CONTEXT, among=among(NAMES, signed)), 5)


def test_sums_wrap_modulo_two_to_the_sixty_four() -> None:
    top = np.array([2**64 - 1, 2**63], np.uint64)
    assert add_modulo([top, np.array([2, 2**63], np.uint64)]).tolist() == [1, 0]


def test_a_signature_holds_for_its_own_key_and_message_alone() -> None:
    one, other = Identity(), Identity()
    signature = one.sign(b"yes")
    assert signed_by(one.public, b"yes", signature)
    assert not signed_by(other.public, b"yes", signature)
    assert not signed_by(one.public, b"no", signature)
    assert not signed_by(one.public, b"yes", other.sign(b"yes"))
    assert not signed_by(one.public, b"yes", f"{signature[:-1]}{'01'[signature[-1] == '0']}")
