"""The first steps of a run: the parties' rows in one common order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.data.tables import Rows
from hedgerow.errors import FormatError, TableError
from hedgerow.methods.fedxgboost.alignment import ActiveAlignment, PassiveAlignment
from hedgerow.methods.fedxgboost.asking import DONE, Asking, PeerSteps
from hedgerow.methods.fedxgboost.ids import IdsSeal, check_agreed_ids, fresh_salt, seal_ids
from hedgerow.methods.fedxgboost.settings import VerticalSettings
from hedgerow.packing import pack
from hedgerow.protocol.peer_messages import PeerMessage

Ints = NDArray[np.int64]


def _row_seal(rows: Rows, salt: bytes) -> IdsSeal:
    """What is compared of agreed rows: ids where there are any, else their number alone."""
    return seal_ids(rows.ids, salt) if rows.ids is not None else IdsSeal(rows.n_rows, "", "")


class ActiveRows:
    """The active party's side."""

    def __init__(self, rows: Rows, settings: VerticalSettings, asking: Asking) -> None:
        self._rows, self._settings, self._asking = rows, settings, asking

    def aligned(self) -> PeerSteps[Ints]:
        """The active party's rows in the common order; afterwards passive parties know theirs."""
        if self._settings.ids == "agreed":
            return (yield from self._agreed())
        return (yield from self._intersected())

    def _agreed(self) -> PeerSteps[Ints]:
        salt = fresh_salt()
        question = pack({"kind": "ids-agreed", "salt": salt.hex()})
        messages = dict.fromkeys(self._asking.passive, question)
        answers = yield from self._asking.ask(messages, "ids-seal")
        own, others = _row_seal(self._rows, salt), {}
        for name, answer in answers.items():
            count = answer.whole("count", 0, 1 << 40)
            seal = IdsSeal(
                count, str(answer.values.get("ordered")), str(answer.values.get("unordered"))
            )
            if (not seal.ordered) != (not own.ordered):
                raise TableError(
                    f"ids are known to {self._settings.active if own.ordered else name} alone, so "
                    f"rows of {name} cannot be compared. No row was shown. Name the id column in "
                    "both, or in none."
                )
            others[name] = seal
        check_agreed_ids(own, others)
        return np.arange(self._rows.n_rows)

    def _intersected(self) -> PeerSteps[Ints]:
        assert self._rows.ids is not None
        alignment = ActiveAlignment(self._rows.ids)
        messages = {}
        for name in self._asking.passive:
            raw = np.frombuffer(alignment.request(name), np.uint8)
            messages[name] = pack({"kind": "ids-request"}, {"request": raw})
        answers = yield from self._asking.ask(messages, "ids-response")
        for name, answer in answers.items():
            alignment.receive(name, answer.array("response", np.uint8, (-1,)).tobytes())
        told, index = alignment.finish(self._settings.min_rows)
        message = pack({"kind": "ids-common"}, {"told": np.frombuffer(told, np.uint8)})
        yield from self._asking.tell_all(message)
        return index


class PassiveRows:
    """A passive party's side."""

    def __init__(self, rows: Rows, settings: VerticalSettings) -> None:
        self._rows, self._settings = rows, settings
        self._alignment: PassiveAlignment | None = None
        self._index: Ints | None = None

    def answer(self, kind: str, message: PeerMessage) -> bytes:
        if self._index is not None:
            raise message.wrong("rows are put in order once")
        if self._settings.ids == "agreed" and kind == "ids-agreed":
            return self._seal(message)
        if self._settings.ids == "psi" and kind == "ids-request" and self._alignment is None:
            assert self._rows.ids is not None
            self._alignment = PassiveAlignment(self._rows.ids)
            raw = self._alignment.answer(message.array("request", np.uint8, (-1,)).tobytes())
            return pack({"kind": "ids-response"}, {"response": np.frombuffer(raw, np.uint8)})
        if kind == "ids-common" and self._alignment is not None:
            index = self._alignment.rows(message.array("told", np.uint8, (-1,)).tobytes())
            if len(index) < (least := self._settings.min_rows):
                raise message.wrong(
                    f"{len(index)} rows are common to all; at least {least} are due"
                )
            self._index = index
            return DONE
        raise FormatError(
            f"the active party asked {kind!r}, which was not agreed on. Nothing was sent."
        )

    def _seal(self, message: PeerMessage) -> bytes:
        try:
            salt = bytes.fromhex(str(message.values.get("salt")))
        except ValueError as error:
            raise message.wrong("its salt is not readable") from error
        seal, self._index = _row_seal(self._rows, salt), np.arange(self._rows.n_rows)
        values = {"count": seal.count, "ordered": seal.ordered, "unordered": seal.unordered}
        return pack({"kind": "ids-seal", **values})

    def index(self, message: PeerMessage) -> Ints:
        """This party's rows in the common order, once they are known."""
        if self._index is None:
            raise message.wrong("it comes before the rows were put in order")
        return self._index
