"""Samples beside their two nearest training images, copies framed (Nicoletti et al., Fig 11), an SVG a class."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.report import COLORS, Picture
from equipoise.report.palette import FONT

CELL, GAP, _MARGIN, _LINE = 46, 8, 66, 18
ROWS = ("sample", "nearest", "second")


def gallery(
    name: str,
    title: str,
    samples: npt.NDArray[Any],
    nearest: npt.NDArray[Any],
    second: npt.NDArray[Any],
    ratio: npt.NDArray[Any],
    threshold: float,
    span: tuple[float, float],
) -> Picture:
    """A strip of columns: a sample, its nearest and its second nearest training image, and d₁/d₂ below.

    Parameters
    ----------
    name, title : of the picture's file, and the text above it.
    samples, nearest, second : (n, channels, height, width)
    ratio : d(nn1)/d(nn2) of each sample
    threshold : a sample is a copy below it
    span : pixel values of black and white
    """
    copies = ratio < threshold
    title = title if len(title) <= 60 else f"…{title[-59:]}"
    width = max(_MARGIN + len(samples) * (CELL + GAP), 8 * len(title))
    height = _LINE + 8 + 3 * (CELL + GAP) + 2 * _LINE - 6
    top = _LINE + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{escape(FONT)}" font-size="12" fill="{COLORS["muted"]}">',
        f'<text x="0" y="13" font-size="14" font-weight="600" fill="{COLORS["ink"]}">{escape(title)}</text>',
    ]
    for row, label in enumerate(ROWS):
        parts.append(f'<text x="0" y="{top + row * (CELL + GAP) + CELL / 2 + 4:g}">{label}</text>')
    for column, images in enumerate(zip(samples, nearest, second, strict=True)):
        x = _MARGIN + column * (CELL + GAP)
        for row, image in enumerate(images):
            parts.append(_cell(image, x, top + row * (CELL + GAP), span))
        parts.append(_mark(x, top, float(ratio[column]), bool(copies[column])))
    parts.append("</svg>")
    alt = f"{title}: {int(copies.sum())} of the {len(samples)} samples shown are copies"
    return Picture("".join(parts), name, alt=alt)


def _mark(x: float, top: float, ratio: float, copy: bool) -> str:
    """Frame a copy with the image it copies, and write the ratio below."""
    below = top + 3 * (CELL + GAP) + 6
    middle = x + CELL / 2
    if not copy:
        return f'<text x="{middle:g}" y="{below:g}" text-anchor="middle">{ratio:.2f}</text>'
    color = COLORS["minority"]
    return (
        f'<rect x="{x - 3:g}" y="{top - 3:g}" width="{CELL + 6}" height="{2 * CELL + GAP + 6}" rx="4" fill="none" '
        f'stroke="{color}" stroke-width="2.5"/>'
        f'<g text-anchor="middle" fill="{color}" font-weight="600">'
        f'<text x="{middle:g}" y="{below:g}">{ratio:.2f}</text>'
        f'<text x="{middle:g}" y="{below + 14:g}">copy</text></g>'
    )


def _cell(image: npt.NDArray[Any], x: float, y: float, span: tuple[float, float]) -> str:
    return (
        f'<image x="{x:g}" y="{y:g}" width="{CELL}" height="{CELL}" preserveAspectRatio="xMidYMid" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{_png(image, span)}"/>'
    )


def _png(image: npt.NDArray[Any], span: tuple[float, float]) -> str:
    from PIL import Image

    low, high = span
    scaled = np.clip((image - low) / ((high - low) or 1.0), 0, 1)
    pixels = np.round(255 * scaled).astype(np.uint8)
    times = max(1, 2 * CELL // max(pixels.shape[1:]))
    pixels = pixels.repeat(times, axis=1).repeat(times, axis=2)
    picture = Image.fromarray(pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, 2))
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()
