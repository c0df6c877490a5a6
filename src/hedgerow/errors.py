"""Every exception and warning of hedgerow's own, with the exit code of the command line.

A message says what happened, the numbers, whether anything was spent, and what to do.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "ExportError",
    "FitWarning",
    "FormatError",
    "HedgerowError",
    "Interrupted",
    "LedgerError",
    "LedgerWriteFailed",
    "PlanError",
    "PlanWarning",
    "Refused",
    "SchemaError",
    "SessionFailed",
    "SettingsError",
    "SlotSpent",
    "SumFailed",
    "TableError",
    "VerificationFailed",
]


class HedgerowError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 2

    def for_a_log(self, *names: str) -> str:
        """The message on one line, for a log that others than the owner of the rows may read.

        A number in it may be a count of rows, which is the owner's: only the kind of the error is
        said then. Digits in `names`, of files and parties, are none.
        """
        text = said = " ".join(str(self).split())
        for name in names:
            said = said.replace(name, "")
        if not any(character.isdigit() for character in said):
            return text
        return f"{type(self).__name__}, with numbers that are shown on a terminal alone"


class SchemaError(HedgerowError, ValueError):
    """The public description of the table is missing something or contradicts itself."""


class TableError(HedgerowError, ValueError):
    """A table does not fit its schema. Raised before a party joins, so nothing is spent."""


class SettingsError(HedgerowError, ValueError):
    """A setting is unknown, out of range, or not used by the chosen method."""


class PlanError(HedgerowError, ValueError):
    """A plan cannot be made, or a question does not fit the plan."""


class PlanWarning(UserWarning):
    """A plan is allowed and looks like a mistake, by public facts alone; no row was looked at."""


class FitWarning(UserWarning):
    """A model was paid for and says hardly anything, by what was released; or a fit takes long."""


class FormatError(HedgerowError, ValueError):
    """Bytes that are not what they claim to be: a file or a message."""


class ExportError(HedgerowError, ValueError):
    """A model cannot be written in another library's format, or that library is not there."""


class LedgerError(HedgerowError):
    """A ledger cannot be opened, is in use, or does not verify."""


class VerificationFailed(HedgerowError):
    """A model, or a file about how it was made, is not what it says; the text names the file."""

    exit_code = 1


class LedgerWriteFailed(LedgerError):
    """A line did not reach the disk, so nothing that depends on it happened. Resumable."""

    exit_code = 5


class BudgetExceeded(HedgerowError):
    """The plan does not fit into what is left of the budget. No party was asked."""

    exit_code = 4


class Refused(HedgerowError):
    """A party declined to answer, in the fixed vocabulary of `hedgerow.protocol.messages`."""

    exit_code = 3


class SumFailed(HedgerowError):
    """A sum could not be completed. What was charged stays charged; the run can be resumed."""

    exit_code = 5


class SessionFailed(HedgerowError):
    """A session between parties could not be finished. There is no model."""

    exit_code = 5


class SlotSpent(HedgerowError):
    """A slot was charged earlier without a stored release, and no spare is left."""

    exit_code = 5


class Interrupted(HedgerowError):
    """The user stopped the run between two releases. Running it again goes on from there."""

    exit_code = 5
