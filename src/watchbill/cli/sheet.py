"""Sheet: a table that fits its terminal. Identifiers stay whole; text is wrapped between words.

If all columns fit, each row is one line. Else empty columns go first. Then the longest text is wrapped in the room that
is left or, if that is little, written below its row. Then names are cut, and cells of several words are wrapped. The
first column is broken only if that is not enough.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions
from rich.text import Text

from watchbill.cli.times import without_date

GAP: Final = 2  # columns between two cells
INDENT: Final = 2  # of text below its row
LEAST_ROOM: Final = 32  # columns in which a sentence can be read
NARROWEST: Final = 12  # columns that a name keeps at least


class Sheet:
    """Rows of cells below headers; `text` are the headers of sentences, `names` those of what may be cut."""

    def __init__(self, *headers: str, text: frozenset[str], names: frozenset[str], labels: dict[str, str]) -> None:
        self._headers = headers
        self._text = text
        self._names = names
        self._labels = labels
        self._rows: list[tuple[Text, ...]] = []

    def leave_out(self, date: str) -> None:
        """Write times of that date without it."""
        self._rows = [tuple([_dateless(cell, date) for cell in row]) for row in self._rows]

    def add_row(self, *cells: Text) -> None:
        """Add a row; cells that are left out are empty."""
        self._rows.append((*cells, *([Text()] * (len(self._headers) - len(cells)))))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw the sheet."""
        yield from self.lines(console, options.max_width)

    def lines(self, console: Console, width: int) -> Iterator[Text]:
        """Give the lines of the sheet, none wider than a terminal if that can be."""
        columns = list(range(len(self._headers)))
        natural = [self._natural(column) for column in columns]
        if _total(natural) > width:
            columns = [column for column in columns if any(row[column].cell_len for row in self._rows)] or columns[:1]
            natural = [self._natural(column) for column in columns]
        below = self._put_below(columns, natural, width)
        widths = self._shrunk(columns, natural, width)
        cut = [self._headers[column] in self._names for column in columns]
        yield from _row(console, [Text(self._headers[column], style="bold") for column in columns], widths, cut)
        for column in below:
            if self._headers[column] not in self._labels:
                yield Text(INDENT * " " + self._headers[column], style="bold")
        for row in self._rows:
            cells = [row[column] for column in columns]
            if any(cell.cell_len for cell in cells):
                yield from _row(console, cells, widths, cut)
            for column in below:
                if row[column].cell_len:
                    label = Text(self._labels.get(self._headers[column], ""), style="dim")
                    for line in _wrapped(console, label + row[column], width - INDENT):
                        yield Text(INDENT * " ") + line

    def _put_below(self, columns: list[int], natural: list[int], width: int) -> list[int]:
        """Take columns of text out of the rows until the rest fits, or has room for one of them; gives those taken."""
        below: list[int] = []
        while _total(natural) > width and (texts := self._texts(columns[1:])):
            widest = max(texts, key=lambda column: natural[columns.index(column)])
            at = columns.index(widest)
            room = width - (_total(natural) - natural[at])
            if room >= LEAST_ROOM:
                natural[at] = room
                break
            below.append(widest)
            del columns[at], natural[at]
        return sorted(below)

    def _texts(self, columns: Sequence[int]) -> list[int]:
        return [column for column in columns if self._headers[column] in self._text]

    def _natural(self, column: int) -> int:
        return max(len(self._headers[column]), *(row[column].cell_len for row in self._rows), 0)

    def _shrunk(self, columns: Sequence[int], natural: Sequence[int], width: int) -> list[int]:
        """Make columns narrower, the widest of a kind first."""
        widths = list(natural)
        least = [self._least(column) for column in columns]
        names = [at for at, column in enumerate(columns) if self._headers[column] in self._names]
        least[0] = NARROWEST
        for group in (names, range(1, len(columns)), [0]):
            while _total(widths) > width:
                room = [at for at in group if widths[at] > least[at]]
                if not room:
                    break
                widths[max(room, key=lambda at: widths[at])] -= 1
        return widths

    def _least(self, column: int) -> int:
        """Give the width below which words of a column would be broken, or names cut too short."""
        if self._headers[column] in self._names:
            return NARROWEST
        natural = self._natural(column)
        if natural <= NARROWEST:
            return natural  # a time or a number
        words = [word for row in self._rows for word in row[column].plain.split()]
        return max(map(len, (self._headers[column], *words)))


class Labelled:
    """A label, and beside it a text of one line or more."""

    def __init__(self, label: str, text: Text) -> None:
        self._label = Text(label, style="dim")
        self._text = text

    def leave_out(self, date: str) -> None:
        """Write times of that date without it."""
        self._text = _dateless(self._text, date)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw both."""
        label, room = self._label, max(options.max_width - self._label.cell_len, NARROWEST)
        for part in self._text.split("\n", allow_blank=True) or [Text()]:
            for line in _wrapped(console, part, room):
                yield label + line
                label = Text(" " * self._label.cell_len)


def _dateless(text: Text, date: str) -> Text:
    return Text(without_date(text.plain, date), style=text.style) if date in text.plain else text


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * max(len(widths) - 1, 0)


def _row(console: Console, cells: Sequence[Text], widths: Sequence[int], cut: Sequence[bool]) -> Iterator[Text]:
    folded = [
        [_cut(cell, width)] if is_cut else _wrapped(console, cell, width)
        for cell, width, is_cut in zip(cells, widths, cut, strict=True)
    ]
    for number in range(max(len(lines) for lines in folded)):
        line = Text()
        for lines, width in zip(folded, widths, strict=True):
            part = lines[number] if number < len(lines) else Text()
            line.append_text(part)
            line.append(" " * (width - part.cell_len + GAP))
        line.rstrip()
        yield line


def _cut(text: Text, width: int) -> Text:
    cut = text.copy()
    cut.truncate(width, overflow="ellipsis")
    return cut


def _wrapped(console: Console, text: Text, width: int) -> list[Text]:
    """Wrap between words; only a word that is longer than a line is broken."""
    if text.cell_len <= width:
        return [text]
    lines = list(text.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines
