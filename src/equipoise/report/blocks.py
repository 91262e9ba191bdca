"""What a section is made of. A block holds values; how they look is the renderers' business."""

from __future__ import annotations

import base64
import math
import numbers
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise._core.checks import check_choice
from equipoise._core.text import printable

if TYPE_CHECKING:
    import pandas as pd

_LEVELS = ("note", "good", "warning")
_LONGEST_CELL = 400  # signs of a text in a table; the JSON has all of them


class Block:
    """A piece of a section: a table, a figure, a paragraph."""

    @property
    def kind(self) -> str:
        """Its class in small letters, by which renderers and the JSON tell it."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Interval:
    """A value with the ends of its interval.

    Attributes
    ----------
    value : float
        The value.
    low : float
        The lower end.
    high : float
        The upper end.

    Examples
    --------
    >>> format_cell(Interval(0.912, 0.88, 0.94), ".2f")
    '0.91 (0.88 to 0.94)'
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Text(Block):
    """A paragraph of plain text.

    Attributes
    ----------
    text : str
        The paragraph.
    """

    text: str


@dataclass(frozen=True)
class Note(Block):
    """A callout: a sentence that stands out, with a level (``note``, ``good``, ``warning``) and a title.

    Attributes
    ----------
    text : str
        The sentence.
    level : {"note", "good", "warning"}
        How it stands out.
    title : str
        A line above it.
    """

    text: str
    level: str = "note"
    title: str = ""

    def __post_init__(self) -> None:
        check_choice("level", self.level, _LEVELS)


@dataclass(frozen=True)
class Headline(Block):
    """The first screen: one sentence that answers, and short labelled parts below it.

    Parameters
    ----------
    claim : str
        What a hurried reader takes away.
    parts : sequence of tuple
        ``(label, sentence)``, such as what was asked, what came out and how sure that is.
    level : str
        ``note``, ``good`` or ``warning``.
    """

    claim: str
    parts: Sequence[tuple[str, str]] = ()
    level: str = "note"

    def __post_init__(self) -> None:
        check_choice("level", self.level, _LEVELS)


@dataclass(frozen=True)
class Facts(Block):
    """A strip of figures, each ``(label, value)`` or ``(label, value, detail)``; values are ready-made texts.

    Attributes
    ----------
    items : sequence of tuple of str
        The figures.
    """

    items: Sequence[tuple[str, ...]]


@dataclass(frozen=True)
class Table(Block):
    """Rows of cells under named columns.

    Parameters
    ----------
    columns : sequence of str
        The names of the columns.
    rows : sequence of sequence
        The cells, as many in each row as there are columns.
    formats : mapping
        Format specification of a column's numbers, ``{"AP": ".3f"}``; 4 significant digits otherwise.
    caption : str
        A sentence below the title.
    emphasis : sequence of int
        Indices of rows to be set off.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)
    emphasis: Sequence[int] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"rows must have {len(self.columns)} cells, got {len(row)}: {list(row)!r}")

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **options: Any) -> Table:
        """A table from a DataFrame's columns (reset the index first if it should show).

        Parameters
        ----------
        frame : DataFrame
            The columns to show.
        **options : Any
            Other fields of :class:`Table`, such as ``formats``.

        Returns
        -------
        Table
            The table.
        """
        return cls([str(c) for c in frame.columns], frame.astype(object).to_numpy().tolist(), **options)

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers, intervals and missing values only.

        >>> Table(["a", "b", "c"], [["x", None, 1], ["y", 2.5, "–"]]).numeric
        [False, True, False]
        """
        if not self.rows:
            return [False] * len(self.columns)
        return [
            all(is_number(cell) or isinstance(cell, Interval) or cell is None for cell in column)
            for column in zip(*self.rows, strict=True)
        ]


@dataclass(frozen=True)
class Figure(Block):
    """A figure from :func:`~equipoise.report.new_figure`, a caption, and a text for those who cannot see it.

    A figure of the package plotly, or its ``{"data": …, "layout": …}``, will do as well.

    Attributes
    ----------
    figure : Chart
        The figure.
    caption : str
        A sentence below it.
    alt : str
        What it shows, for those who cannot see it.
    height : int
        In pixels.
    """

    figure: Any
    caption: str = ""
    alt: str = ""
    height: int = 380

    def payload(self) -> dict[str, Any]:
        """The figure as plain JSON values, numbers to seven digits.

        Returns
        -------
        dict
            ``data`` and ``layout``.
        """
        import json

        from equipoise.report.as_json import to_plain

        spec = json.loads(self.figure.to_json()) if hasattr(self.figure, "to_json") else self.figure
        if not isinstance(spec, Mapping):
            spec = {"data": spec.data, "layout": spec.layout}
        return {
            "data": _rounded(to_plain(spec.get("data", []))),
            "layout": _rounded(to_plain(spec.get("layout", {}))),
        }


@dataclass(frozen=True)
class Picture(Block):
    """A still picture as SVG, for pages that should stay small.

    Parameters
    ----------
    svg : str
        The picture's text.
    name : str
        Of the file ``name.svg`` that the Markdown page refers to and :meth:`Report.write` puts beside it.
    caption, alt : str
        A sentence below it, and a text for those who cannot see it.
    """

    svg: str = field(repr=False)
    name: str
    caption: str = ""
    alt: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", self.name):
            raise ValueError(f"name must be letters, digits, dots and dashes, got {self.name!r}")

    @property
    def address(self) -> str:
        """The picture itself as an address, for an image on a page that asks nobody."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()

    @classmethod
    def from_matplotlib(cls, figure: Any, name: str, caption: str = "", alt: str = "") -> Picture:
        """A matplotlib figure; the same figure gives the same text.

        Parameters
        ----------
        figure : matplotlib.figure.Figure
            The figure.
        name : str
            The name of its file, without a suffix.
        caption : str
            A sentence below it.
        alt : str
            What it shows, for those who cannot see it.

        Returns
        -------
        Picture
            The picture, as SVG.
        """
        import io

        import matplotlib

        text = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        return cls(printable(text.getvalue()), name, caption, alt)


@dataclass(frozen=True)
class Code(Block):
    """Text in a fixed-width font, such as a command.

    Attributes
    ----------
    text : str
        The text.
    """

    text: str


@dataclass(frozen=True)
class Ranking(Block):
    """Names with an estimate and its interval each, drawn on one scale: importances, differences, scores.

    Parameters
    ----------
    items : sequence of tuple
        ``(name, interval)``, in the order of reading.
    caption : str
        A sentence above them.
    format : str
        Format specification of the numbers.
    from_zero : bool
        Whether the scale takes in zero; else it spans the intervals.

    Examples
    --------
    >>> Ranking([("age", Interval(0.2, 0.1, 0.3))], "Importance").places[0][2:]
    (33.33, 66.67, 100.0)
    """

    items: Sequence[tuple[str, Interval]]
    caption: str = ""
    format: str = ".3f"
    from_zero: bool = True

    def _place(self, value: float) -> float:
        ends = [
            *([0.0] if self.from_zero else []),
            *(end for _, i in self.items for end in (i.low, i.high) if math.isfinite(end)),
        ]
        low, high = min(ends, default=0.0), max(ends, default=0.0)
        return round(100 * (min(max(value, low), high) - low) / ((high - low) or 1.0), 2)

    @property
    def zero(self) -> float:
        """Where zero lies on the scale, in percent of its length; before its start if the scale leaves zero out."""
        return self._place(0.0) if self.from_zero else -1.0

    @property
    def places(self) -> list[tuple[str, Interval, float, float, float]]:
        """Each name, its interval, and where the low end, the value and the high end lie, in percent."""
        return [(name, i, *(self._place(v) for v in (i.low, i.value, i.high))) for name, i in self.items]  # type: ignore[misc]


@dataclass(frozen=True)
class Gallery(Block):
    """Small pictures with a line each, such as misjudged images.

    Parameters
    ----------
    items : sequence of tuple
        ``(png, line)``: the bytes of a PNG file, and what to say below it.
    caption : str
        A sentence above them.
    """

    items: Sequence[tuple[bytes, str]] = field(repr=False)
    caption: str = ""

    def __post_init__(self) -> None:
        for png, line in self.items:
            if not png.startswith(b"\x89PNG\r\n"):
                raise ValueError(f"items must hold PNG files, got {png[:8]!r} for {line!r}")

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Each picture as an address, and its line."""
        return [("data:image/png;base64," + base64.b64encode(png).decode(), line) for png, line in self.items]


@dataclass(frozen=True)
class Links(Block):
    """Other pages beside this one, each ``(title, address, sentence)``; an index is made of them.

    Attributes
    ----------
    items : sequence of tuple of str
        Title, address and sentence of each page.

    Examples
    --------
    >>> Links([("x", "javascript:alert(1)", "")])
    Traceback (most recent call last):
    ...
    ValueError: an address must name a file beside the page, got 'javascript:alert(1)'
    """

    items: Sequence[tuple[str, str, str]]

    def __post_init__(self) -> None:
        for _, address, _ in self.items:
            if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*(#[\w.-]*)?", address):
                raise ValueError(f"an address must name a file beside the page, got {address!r}")


@dataclass(frozen=True)
class Row(Block):
    """Blocks side by side where the page is wide enough; small multiples with a small ``width``.

    Parameters
    ----------
    blocks : sequence of Block
        From left to right.
    width : int
        The least width of each, in pixels.
    """

    blocks: Sequence[Block]
    width: int = 400


@dataclass(frozen=True)
class Details(Block):
    """Blocks folded away behind a line.

    Attributes
    ----------
    summary : str
        The line that stays visible.
    blocks : sequence of Block
        What is folded away.
    """

    summary: str
    blocks: Sequence[Block]


def inner_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, also those inside rows and folds."""
    for block in blocks:
        yield block
        if isinstance(block, (Row, Details)):
            yield from inner_blocks(block.blocks)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return {key: _rounded(item) for key, item in value.items()} if isinstance(value, dict) else value


def opening(text: str, limit: int = 300) -> tuple[str, str]:
    """The first sentences of a long text, and the rest; a text that is not long stays whole.

    >>> opening("One. Two. Three.", 10)
    ('One. Two.', 'Three.')
    """
    if len(text) <= limit:
        return text, ""
    ends = [found.end() for found in re.finditer(r"[.;!?](?=\s)", text[:limit])]
    at = ends[-1] if ends else limit
    return text[:at], text[at:].lstrip()


def clip(text: object, limit: int) -> str:
    """Text cut to ``limit`` signs.

    >>> clip("a long label", 6)
    'a lon…'
    """
    words = str(text)
    return words if len(words) <= limit else words[: limit - 1] + "…"


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def format_cell(value: Any, spec: str = "") -> str:
    """A cell as text: numbers by ``spec``, missing values as a dash.

    >>> format_cell(1234567), format_cell(0.123456), format_cell(None)
    ('1,234,567', '0.1235', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, Interval):
        number, low, high = (format_cell(v, spec) for v in (value.value, value.low, value.high))
        return f"{number} ({low} to {high})"
    if not is_number(value):
        return clip(value, _LONGEST_CELL)
    if value != value:
        return "–"
    if spec:
        return format(value, spec)
    if isinstance(value, numbers.Integral) or (float(value).is_integer() and abs(value) >= 1000):
        return f"{int(value):,}"
    return f"{float(value):.4g}"
