"""One palette, in a light and a dark dress; the page's style, its plots and still pictures all take it."""

from __future__ import annotations

#: What a color stands for, on white paper.
COLORS = {
    "paper": "#ffffff",
    "wash": "#f3f6f8",
    "line": "#d9e0e6",
    "grid": "#e6eaee",
    "ink": "#1f2b36",
    "muted": "#56646f",
    "majority": "#8fa3b5",
    "minority": "#c8460f",
    "accent": "#0b6e74",
    "soft": "rgba(11,110,116,0.16)",
    "good": "#2b8a3e",
    "warning": "#b7791f",
}
#: The same at night.
DARK = {
    "paper": "#11181f",
    "wash": "#1a242d",
    "line": "#33414d",
    "grid": "#26323c",
    "ink": "#e8edf1",
    "muted": "#a6b4c0",
    "majority": "#7f93a6",
    "minority": "#ff8d5e",
    "accent": "#55c5c9",
    "soft": "rgba(85,197,201,0.18)",
    "good": "#66c97e",
    "warning": "#e5b454",
}
#: Colors for series, told apart by people with any color vision (after Okabe and Ito).
PALETTE = [
    "#0b6e74",
    "#c8460f",
    "#5b5bd6",
    "#b7791f",
    "#8fa3b5",
    "#b0357a",
    "#3c8d2f",
    "#3a7ca5",
    "#7a5c3e",
    "#1f2b36",
]
_DARK_PALETTE = [
    "#55c5c9",
    "#ff8d5e",
    "#a3a3ff",
    "#e5b454",
    "#7f93a6",
    "#ee7fbd",
    "#83cf76",
    "#7fbfe3",
    "#c9a27c",
    "#e8edf1",
]
#: From no color to the accent, for shaded tables and maps.
SHADES = [[0, COLORS["wash"]], [1, COLORS["accent"]]]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def night_colors() -> dict[str, str]:
    """Each color of the day and the one that takes its place at night.

    >>> night_colors()["#ffffff"]
    '#11181f'
    """
    named = {COLORS[name]: DARK[name] for name in COLORS}
    return {**named, **dict(zip(PALETTE, _DARK_PALETTE, strict=True))}


def style_variables(colors: dict[str, str]) -> str:
    """The colors as CSS variables.

    >>> style_variables({"ink": "#000"})
    '--ink:#000;'
    """
    return "".join(f"--{name}:{value};" for name, value in colors.items())
