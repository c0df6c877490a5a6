"""How CSV files are written: separator, signs of numbers, encoding, words for missing values.

It is public and local: it says nothing about what a table means, so parties of one schema may
write files differently.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from hedgerow.data.documents import Matching, shown
from hedgerow.data.schema_checks import SCHEMA
from hedgerow.errors import SchemaError

SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar"}
_MARKS = {
    codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_BLANKS = "[ \u00a0\u202f]"  # that people and spreadsheets put between thousands
_POINTED = r"^[+-]?[0-9]*\.[0-9]*([eE][+-]?[0-9]+)?$"
WINDOWS = "cp1252"  # the usual encoding of western Europe besides UTF-8
WRONG_SIGN = "?"  # in place of a number with a sign that the format does not have


@dataclass(frozen=True)
class CsvFormat:
    """How CSV files are written; a byte order mark at the start of a file goes before `encoding`.

    >>> CsvFormat(";", ",", ".", "cp1252").decimal
    ','
    """

    separator: Annotated[
        str, Matching(re.compile(r"[^\w\s\"'.+-]|[\t ]"), 'one sign, such as ",", ";" or "\\t"')
    ] = ","
    decimal: Literal[".", ","] = "."
    thousands: Literal["", ".", ",", " ", "'"] = ""
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()  # words for it besides those that are known everywhere

    def __post_init__(self) -> None:
        SCHEMA.check(self, "[csv]")
        if self.decimal == self.thousands:
            raise SchemaError(
                f"[csv] has {self.decimal!r} as decimal sign and between thousands; correct one"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError) as error:
            raise SchemaError(
                f"[csv] has encoding = {shown(self.encoding)}, which is not known; common ones are "
                "utf-8, cp1252 (Windows, western Europe), latin-1, cp1250 and utf-16"
            ) from error

    @property
    def has_points(self) -> bool:
        """Whether numbers are written as everywhere else, with a point and nothing more."""
        return self.decimal == "." and not self.thousands

    def to_dict(self) -> dict[str, Any]:
        """What differs from ordinary files."""
        given = {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in given.items()}

    def encoding_of(self, file: Path) -> str:
        """The encoding of a file: what its byte order mark says, else the format's."""
        with file.open("rb") as opened:
            start = opened.read(3)
        said = (name for mark, name in _MARKS.items() if start.startswith(mark))
        return next(said, self.encoding)

    def header_of(self, file: Path) -> list[str]:
        """The names in the first line of a file."""
        encoding = self.encoding_of(file)
        with file.open(encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline="") as f:
            return next(csv.reader(f, delimiter=self.separator), [])

    def other_separator(self, header: list[str]) -> str | None:
        """The sign by which a line that is one field here seems to be separated, in words."""
        if len(header) != 1:
            return None
        for sign in SEPARATORS:
            if sign != self.separator and sign in header[0]:
                return f"{_NAMES[sign]}s: say so with separator = {sign!r}".replace("'", '"')
        return None

    def numbers(self, text: Any) -> Any:
        """A column of text whose numbers have points; those that this format has not are `?`."""
        import pyarrow.compute as pc

        if self.has_points:
            return text
        translated = self.values(text)
        # 1.234 is 1234 or 1.234: to guess would be wrong by a thousand without a word.
        unclear = pc.and_(
            pc.match_substring_regex(text, _POINTED),
            pc.invert(pc.match_substring_regex(text, self._pattern)),
        )
        return pc.if_else(unclear, WRONG_SIGN, translated) if self.decimal == "," else translated

    def values(self, text: Any) -> Any:
        """A column of text whose numbers have points; all other text as it is."""
        import pyarrow as pa
        import pyarrow.compute as pc

        is_text = pa.types.is_string(text.type) or pa.types.is_large_string(text.type)
        if self.has_points or not is_text:
            return text
        plain = pc.replace_substring_regex(text, self._between, "") if self.thousands else text
        plain = pc.replace_substring(plain, self.decimal, ".")
        return pc.if_else(pc.match_substring_regex(text, self._pattern), plain, text)

    def has_numbers(self, text: Any) -> bool:
        """Whether all of a column of text are numbers as this format writes them."""
        import pyarrow.compute as pc

        return bool(pc.all(pc.match_substring_regex(text, self._pattern)).as_py())

    @property
    def _between(self) -> str:
        return {"": "", " ": _BLANKS, "'": "['\u2019]"}.get(self.thousands, rf"\{self.thousands}")

    @property
    def _pattern(self) -> str:
        """A number as this format writes it; thousands in groups of three digits, or not at all."""
        whole = "[0-9]+"
        if self.thousands:
            whole = f"([0-9]+|[0-9]{{1,3}}({self._between}[0-9]{{3}})+)"
        point = rf"\{self.decimal}"
        return rf"^\s*[+-]?({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?\s*$"


PLAIN = CsvFormat()


def changed(base: CsvFormat, **given: str | Iterable[str] | None) -> CsvFormat:
    """A format with what was given instead; "tab" is a name of that sign."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if values.get("separator") in ("tab", "\\t"):
        values["separator"] = "\t"
    if "missing" in values:
        values["missing"] = tuple(values["missing"])
    return CsvFormat(**{**asdict(base), **values})


def sniffed(file: Path, given: CsvFormat) -> CsvFormat:
    """The format with the separator that divides the first line into most fields.

    For drafts, which read the rows anyway. A file that is no UTF-8 is taken for cp1252, in which
    nearly all bytes mean something: whoever drafts is told, and looks at the names.
    """
    if given.encoding == PLAIN.encoding and not _decodes(file, given.encoding_of(file)):
        given = changed(given, encoding=WINDOWS if _decodes(file, WINDOWS) else given.encoding)
    by_sign = {sign: len(changed(given, separator=sign).header_of(file)) for sign in SEPARATORS}
    return changed(given, separator=max(SEPARATORS, key=lambda sign: by_sign[sign]))


def _decodes(file: Path, encoding: str) -> bool:
    """Whether a whole file is text in an encoding."""
    try:
        with file.open(encoding=encoding, newline="") as opened:
            while opened.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return False
    return True
