"""What people see of an object: one line in a terminal, a small table in a notebook.

An object says what it is as a `Card`; both forms are made of it here, so that every layer can have
them. The HTML loads nothing, runs nothing, and takes the colours of the page around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

LONGEST = 48  # letters of a value in a line
LONGEST_CELL = 160
MOST_ROWS = 24  # of a table
# Colours of the page are inherited; the two of our own can be read on white and on black. Notebooks
# have rules for tables of their own, which a class named twice and `!important` are stronger than.
_STYLE = """
.hedgerow-card { font-size: 13px; line-height: 1.45; max-width: 60rem; margin: .25rem 0;
  padding: .5rem .8rem; border: 1px solid rgba(128, 128, 128, .4); border-radius: .5rem; }
.hedgerow-card p { margin: .15rem 0 .35rem; }
.hedgerow-card .hc-title { font-size: 14px; font-weight: 600; color: #2f9672; }
.hedgerow-card .hc-alarm { font-weight: 600; color: #e0503f; }
.hedgerow-card .hc-note { opacity: .75; }
.hedgerow-card.hedgerow-card table { border-collapse: collapse; border: none;
  margin: .25rem 0 .5rem; background: none; color: inherit; font-size: inherit; }
.hedgerow-card.hedgerow-card tr { background: none !important; }
.hedgerow-card.hedgerow-card th, .hedgerow-card.hedgerow-card td { text-align: left !important;
  vertical-align: top; border: none; padding: .1rem 1.2rem .1rem 0; background: none;
  color: inherit; white-space: normal; max-width: none; overflow-wrap: anywhere; }
.hedgerow-card.hedgerow-card th { font-weight: 500; opacity: .65; white-space: nowrap; }
.hedgerow-card.hedgerow-card td.hc-number { text-align: right !important;
  font-variant-numeric: tabular-nums; }
.hedgerow-card .hc-pictures { display: flex; flex-wrap: wrap; gap: .5rem;
  align-items: flex-start; }
"""


@dataclass(frozen=True)
class Card:
    """What an object says of itself.

    `facts` are names with values, of which a line shows those that are not empty; `rows` a table
    under `head`; `alarm` what nobody may overlook.
    """

    title: str
    facts: tuple[tuple[str, object], ...]
    head: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    notes: tuple[str, ...] = ()
    alarm: str = ""


class Shown:
    """An object that terminals show in one line and notebooks as a table."""

    def _card(self) -> Card:
        return Card(type(self).__name__, ())

    def __repr__(self) -> str:
        return line_of(self._card())

    def _repr_html_(self) -> str:
        return html_of(self._card())


def line_of(card: Card) -> str:
    """A card in one line.

    >>> line_of(Card("Plan", (("method", "auto"), ("epsilon", 1.0), ("run", ""))))
    '<Plan: method auto; epsilon 1>'
    """
    facts = [f"{name} {short(_text(value), LONGEST)}" for name, value in card.facts if _text(value)]
    told = [card.alarm] if card.alarm else []
    return f"<{card.title}: {'; '.join([*told, *facts])}>"


def html_of(card: Card, pictures: Sequence[str] = ()) -> str:
    """A card as HTML, every text escaped by the XML writer; `pictures` are finished SVG texts."""
    root = Element("div", {"class": "hedgerow-card"})
    SubElement(root, "style").text = _STYLE
    _paragraph(root, card.title, "hc-title")
    if card.alarm:
        _paragraph(root, card.alarm, "hc-alarm")
    facts = [(name, value) for name, value in card.facts if _text(value)]
    table = SubElement(root, "table")
    for name, value in facts:
        line = SubElement(table, "tr")
        SubElement(line, "th").text = printable(name)
        SubElement(line, "td").text = short(_text(value), 10 * LONGEST_CELL)
    if card.rows:
        _rows(root, card)
    for sentence in "\n".join(card.notes).splitlines():
        _paragraph(root, sentence, "hc-note")
    start, _, end = tostring(root, "unicode", method="html").rpartition("</div>")
    drawn = f'<div class="hc-pictures">{"".join(pictures)}</div>' if pictures else ""
    return f"{start}{drawn}</div>{end}"


def _rows(root: Element, card: Card) -> None:
    table = SubElement(root, "table")
    head = SubElement(table, "tr")
    for name in card.head:
        SubElement(head, "th").text = printable(name)
    for row in card.rows[:MOST_ROWS]:
        line = SubElement(table, "tr")
        for value in row:
            kind = {"class": "hc-number"} if isinstance(value, (int, float)) else {}
            SubElement(line, "td", kind).text = short(_text(value), LONGEST_CELL)
    if (left := len(card.rows) - MOST_ROWS) > 0:
        _paragraph(root, f"and {left:,} more", "hc-note")


def _paragraph(root: Element, text: str, kind: str) -> None:
    SubElement(root, "p", {"class": kind}).text = printable(text)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(value)


def listed(values: Iterable[object], most: int = 6) -> str:
    """The first values of a list, and how many there are in all.

    >>> listed("abc"), listed(range(300), 3)
    ('a, b, c', '0, 1, 2 ... (300)')
    """
    texts = [_text(value) for value in values]
    if len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[:most])} ... ({len(texts):,})"


def printable(value: object) -> str:
    """The text of a value; control characters have no place in a page or a picture.

    >>> printable("a" + chr(27) + "[2J")
    'a?[2J'
    """
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(value))


def short(words: str, longest: int) -> str:
    """A text cut to so many letters.

    >>> short("marital_status", 8)
    'marital…'
    """
    return words if len(words) <= longest else words[: longest - 1].rstrip() + "…"
