"""Which rows of several parties are the same people, and in which common order: messages only.

Two ways. *Intersection*: the active party intersects its ids with those of every passive party by
private set intersection (Diffie-Hellman on a curve; exact, since whole points are compared), then
says to all which ids are left. *Agreed*: everybody claims to have the same ids in the same order,
and that is checked by one hash each (`ids.py`).

Intersection, message by message, with A the active party's ids and P those of a passive party:

1. active to passive: A under a key of the active party's, new for each passive party.
   The passive party learns the number of ids in A. It reads no id.
2. passive to active: the same under its own key as well, in the same order; and P under its own
   key, sorted by what it looks like, so that no order of rows is left in it.
   The active party learns which of its own ids are in P, and the number of ids in P. It reads no
   id of P that it does not have itself.
3. active to every passive party: a key and the keyed hashes of the ids that *all* parties hold.
   Every one of these ids is in P, so a passive party that looks up its own ids in them learns the
   ids common to all, and that all others hold them; the hashes of no other id were ever sent. It
   does not learn which further ids it shares with the active party, unless it is the only passive
   party: then there are none.

Nobody learns anything about ids that one of two parties lacks, but their number. Parties are
assumed to follow the messages: an active party that asks about ids it made up is told which of
them exist, so a passive party may limit how many are asked about. Ids that can be guessed (numbers
of a public register) can be asked about in this way; a limit on the number is all that protects
them.

The common order is that of the keyed hashes. The key is new each time, so it follows no table.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError, SessionFailed, SettingsError, TableError
from hedgerow.methods.fedxgboost.ids import KEY_BYTES, checked_ids
from hedgerow.packing import pack, unpack

HASH_BYTES = 32
UNUSED_FALSE_POSITIVES = 1e-9  # of data structures that have them; whole points have none
Ints = NDArray[np.int64]


class ActiveAlignment:
    """The side of the party that holds the labels.

    >>> active = ActiveAlignment(["a", "b", "c", "d"])
    >>> one, two = PassiveAlignment(["b", "d", "x"]), PassiveAlignment(["d", "y", "b", "c"])
    >>> active.receive("one", one.answer(active.request("one")))
    2
    >>> active.receive("two", two.answer(active.request("two")))
    3
    >>> told, rows = active.finish()
    >>> [active.ids[i] for i in rows] == [two.ids[i] for i in two.rows(told)]
    True
    >>> sorted(active.ids[i] for i in rows)
    ['b', 'd']
    """

    def __init__(self, ids: Sequence[object]) -> None:
        self.ids = checked_ids(ids)
        self._open: dict[str, Any] = {}  # by passive party: its side of the intersection
        self._shared: dict[str, Ints] = {}  # by passive party: rows whose ids it holds too

    def request(self, party: str) -> bytes:
        """The question to one passive party: all ids, under a key that is used for it alone."""
        if party in self._open or party in self._shared:
            raise SessionFailed(f"the ids were sent to {party} already; nothing was sent again")
        side = _library().client.CreateWithNewKey(True)
        self._open[party] = side
        return bytes(side.CreateRequest(list(self.ids)).SerializeToString())

    def receive(self, party: str, answer: bytes) -> int:
        """Read a passive party's answer: how many ids it shares with this party."""
        if party not in self._open:
            raise SessionFailed(f"{party} answers about ids without having been asked")
        _, parts = unpack(answer)
        if set(parts) != {"setup", "response"}:
            raise FormatError(f"the answer of {party} about ids is not readable")
        library = _library()
        setup = _read(library.ServerSetup(), parts["setup"].tobytes(), "answer about ids")
        response = _read(library.Response(), parts["response"].tobytes(), "answer about ids")
        if setup.WhichOneof("data_structure") != "raw":  # anything else has false positives
            raise FormatError(f"the answer of {party} about ids is not exact")
        if len(response.encrypted_elements) != len(self.ids):
            raise FormatError(f"the answer of {party} is not about the ids it was asked about")
        try:
            found = self._open[party].GetIntersection(setup, response)
        except (RuntimeError, ValueError) as error:
            raise FormatError(f"the answer of {party} about ids is not readable") from error
        del self._open[party]
        self._shared[party] = np.unique(np.array(found, np.int64))
        return len(self._shared[party])

    def finish(self, least: int = 1) -> tuple[bytes, Ints]:
        """What to tell every passive party, and this party's own rows in the common order."""
        if self._open or not self._shared:
            raise SessionFailed(f"{len(self._open)} parties have not answered about ids yet")
        common = np.arange(len(self.ids))
        for rows in self._shared.values():
            common = np.intersect1d(common, rows, assume_unique=True)
        if len(common) < least:
            counts = ", ".join(f"{name} {len(rows):,}" for name, rows in self._shared.items())
            raise TableError(
                f"{len(common):,} ids are held by all parties, and at least {least:,} are needed; "
                f"of {len(self.ids):,} ids here also by: {counts}. No row was shown. Check that "
                "all parties write ids the same way."
            )
        key = secrets.token_bytes(KEY_BYTES)
        hashes = _hashes(key, [self.ids[i] for i in common])
        order = _order(hashes)
        told = pack({"key": key.hex()}, {"hashes": hashes[order]})
        return told, common[order]


class PassiveAlignment:
    """The side of a party without labels. `most_asked` limits how many ids it answers about."""

    def __init__(self, ids: Sequence[object], most_asked: int | None = None) -> None:
        self.ids = checked_ids(ids)
        self._most_asked = most_asked

    def answer(self, request: bytes) -> bytes:
        """The answer to the active party's question; says nothing but which ids are shared."""
        library = _library()
        asked = _read(library.Request(), request, "question about ids")
        count = len(asked.encrypted_elements)
        if not asked.reveal_intersection or count == 0:
            raise FormatError("the question about ids is not readable; nothing was answered")
        if self._most_asked is not None and count > self._most_asked:
            raise SessionFailed(
                f"the active party asks about {count:,} ids, and this party answers about at most "
                f"{self._most_asked:,}. Nothing was answered. Raise the limit if that many are due."
            )
        side = library.server.CreateWithNewKey(True)  # new for every answer
        try:
            response = side.ProcessRequest(asked)
        except (RuntimeError, ValueError) as error:
            raise FormatError(
                "the question about ids is not readable; nothing was answered"
            ) from error
        setup = side.CreateSetupMessage(
            UNUSED_FALSE_POSITIVES, count, list(self.ids), library.DataStructure.RAW
        )
        parts = {"setup": setup.SerializeToString(), "response": response.SerializeToString()}
        return pack({}, {name: np.frombuffer(raw, np.uint8) for name, raw in parts.items()})

    def rows(self, told: bytes) -> Ints:
        """This party's rows in the common order, from what the active party told all."""
        values, parts = unpack(told)
        try:
            key = bytes.fromhex(values["key"])
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError("what is told about common ids is not readable") from error
        hashes = parts.get("hashes", np.zeros(0, np.uint8))
        if len(key) != KEY_BYTES or hashes.dtype != np.uint8 or hashes.ndim != 2:
            raise FormatError("what is told about common ids is not readable")
        own = {row.tobytes(): i for i, row in enumerate(_hashes(key, self.ids))}
        wanted = [row.tobytes() for row in hashes]
        unknown = sum(one not in own for one in wanted)
        if unknown or not wanted or sorted(set(wanted)) != wanted:
            raise SessionFailed(
                f"of {len(wanted):,} ids that are said to be held by all parties, {unknown:,} are "
                "not held here, or they are not in order. No row was used. Was the table changed "
                "since the ids were compared?"
            )
        return np.array([own[one] for one in wanted], np.int64)


def disclosures_of_alignment(
    how: str, active: str = "the active party", passive: Sequence[str] = ("every passive party",)
) -> list[tuple[str, str, str]]:
    """What aligning rows shows without an epsilon: (seen_by, about, what)."""
    if how == "agreed":
        everyone = [active, *passive]
        what = "its number of rows, and whether it has the agreed ids in the agreed order"
        return [(active, name, what) for name in everyone[1:]]
    if how != "intersection":
        raise SettingsError(f"alignment is 'intersection' or 'agreed', not {how!r}")
    told = f"the number of ids it holds, and which ids of {active} are among them"
    shown = []
    for name in passive:
        shown.append((name, active, "the number of ids it holds"))
        shown.append((active, name, told))
        shown.append((name, "all other parties", "which of its ids they all hold"))
    shown.append(("the coordinator", "all parties", "the number of ids, by the length of messages"))
    return shown


def _library() -> Any:
    """The intersection itself comes from OpenMined; only this function loads it."""
    try:
        import private_set_intersection.python as library
    except ImportError as error:
        raise SettingsError(
            "intersecting ids needs another package. Nothing was sent. Install it with "
            "pip install 'hedgerow[vertical]', or have the parties agree on ids before."
        ) from error
    return library


def _read(message: Any, data: bytes, what: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise FormatError(f"the {what} is not readable") from error
    return message


def _hashes(key: bytes, ids: Sequence[str]) -> NDArray[np.uint8]:
    """(id, byte): under a key, so that nobody else can test guesses, and different in every run."""
    raw = b"".join(hmac.digest(key, one.encode("utf-8"), "sha256") for one in ids)
    return np.frombuffer(raw, np.uint8).reshape(-1, HASH_BYTES)


def _order(hashes: NDArray[np.uint8]) -> Ints:
    """The order of the hashes as strings of bytes."""
    return np.lexsort(hashes.view(">u8")[:, ::-1].T)
