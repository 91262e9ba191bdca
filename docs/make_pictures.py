"""Make the picture of a report that the README shows: a real report on an embedded set, in a headless browser.

Run: python docs/make_pictures.py [folder of a report that is there already]
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

PICTURE = Path(__file__).parent / "images" / "report.png"
MOST_BYTES = 300_000


def write_report(folder: Path) -> None:
    """The report on 1,395 embedded digits of which 45 are eights, where a miss costs twenty false alarms."""
    wish = ["--cost", "fp=1,fn=20", "--budget", "150s", "--out", str(folder)]
    subprocess.run([sys.executable, "-m", "equipoise", "report", *wish], check=True)


def screenshot(page: Path) -> bytes:
    """The first screen of a page, as wide as a laptop's."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        view = opened.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        view.goto(page.resolve().as_uri())
        view.wait_for_timeout(1500)
        picture = view.screenshot()
        opened.close()
    return picture


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(made)
        if len(sys.argv) == 1:
            write_report(folder)
        image = Image.open(io.BytesIO(screenshot(folder / "report.html")))
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(PICTURE, optimize=True)
    size = PICTURE.stat().st_size
    print(f"{PICTURE}: {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"the picture should have at most {MOST_BYTES:,} bytes")


if __name__ == "__main__":
    main()
