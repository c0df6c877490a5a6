"""Who asks for a run, what for and until when: in the plan, so that what is shown is what runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from hedgerow.errors import PlanError

KEYS = ("purpose", "asker", "ends")
LONGEST = {"purpose": 500, "asker": 120, "ends": 10}  # characters


@dataclass(frozen=True)
class Request:
    """What people decide on beside the cost; "" where a plan does not say it.

    `ends` is the last day, in UTC, on which a party opens or answers the run.
    """

    purpose: str = ""
    asker: str = ""
    ends: str = ""

    def __post_init__(self) -> None:
        for key in KEYS:
            text = getattr(self, key)
            if not isinstance(text, str) or len(text) > LONGEST[key] or not text.isprintable():
                raise PlanError(
                    f"{key} must be one line of at most {LONGEST[key]} printable characters. "
                    "Nothing was asked and nothing was spent."
                )
        if self.ends:
            _day(self.ends)

    def has_ended(self, today: date) -> bool:
        """Whether the run's last day is over."""
        return bool(self.ends) and today > _day(self.ends)

    def to_dict(self) -> dict[str, str]:
        """What is said; a plan that says nothing of it keeps the bytes it always had."""
        return {key: getattr(self, key) for key in KEYS if getattr(self, key)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Request:
        """From the top of a plan; a date of TOML is a date of ours."""
        found = {key: values[key] for key in KEYS if key in values}
        if type(found.get("ends")) is date:
            found["ends"] = found["ends"].isoformat()
        return Request(**found)


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:  # one day is written in one way: it is hashed
        raise PlanError(
            f"ends is {text!r}; it must be a day such as 2026-12-31. Nothing was asked and nothing "
            "was spent."
        )
    return day


NO_REQUEST = Request()
