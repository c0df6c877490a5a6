"""One message between parties as it was read: who wrote it, of what kind, its values and arrays.

A message that cannot be read, or has another shape than is due, is a FormatError that says who
wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormatError
from hedgerow.packing import unpack


class PeerMessage:
    """What a party wrote, checked as it is read."""

    def __init__(self, sender: str, kind: str, data: bytes) -> None:
        self.sender, self.kind = sender, kind
        try:
            self.values, self._arrays = unpack(data)
        except FormatError as error:
            raise FormatError(f"{self._place}: {error}") from error
        if self.values.get("kind") != kind:
            raise self.wrong(f"it is of kind {self.values.get('kind')!r}")

    @property
    def _place(self) -> str:
        return f"the message of {self.sender} ({self.kind}) cannot be read"

    def wrong(self, what: str) -> FormatError:
        return FormatError(
            f"{self._place}: {what}. The run ends here; run it again once {self.sender} runs the "
            "same version on the same agreement."
        )

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """An array that must have this type and shape; -1 stands for any length."""
        array = self._arrays.get(name)
        wanted = ", ".join("any" if n < 0 else str(n) for n in shape)
        if array is None or array.dtype != np.dtype(dtype) or array.ndim != len(shape):
            raise self.wrong(f"{name} should be {np.dtype(dtype)} of shape ({wanted})")
        if any(n >= 0 and n != m for n, m in zip(shape, array.shape, strict=True)):
            raise self.wrong(f"{name} has shape {array.shape}; expected ({wanted})")
        return array

    def has(self, name: str, dtype: Any) -> bool:
        """Whether there is such an array of this type."""
        return name in self._arrays and self._arrays[name].dtype == np.dtype(dtype)

    def numbers(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """An array of finite float64."""
        array = self.array(name, np.float64, shape)
        if not bool(np.isfinite(array).all()):
            raise self.wrong(f"{name} has a number that is not finite")
        return array

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number between two bounds, both allowed."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(f"{name} is {value!r}; expected {low} to {high}")
        return value


def check_senders(messages: Mapping[str, bytes], senders: set[str], kind: str) -> None:
    """Refuse messages that are missing, or from whom none is due in this step."""
    if set(messages) != senders:
        raise FormatError(
            f"messages ({kind}) are due from {sorted(senders)}, but came from {sorted(messages)}. "
            "The run ends here."
        )
