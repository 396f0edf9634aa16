"""``python -m tests.browser.images``: the pictures of the documentation, from those that the tests took
(``SCREENSHOTS=1 python -m pytest tests/browser``).

Cropped to what a screen shows of a long page, and with no more colours than one can tell.
"""

from __future__ import annotations

import sys

from PIL import Image

from tests.browser.driving import SCREENSHOTS

IMAGES = SCREENSHOTS.parent.parent / "docs" / "images"
CHOSEN = {
    "overview-desktop-light": 1500,
    "overview-week-desktop-dark": 1500,
    "overview-phone-light": 1300,
    "list-desktop-light": 1000,
    "job-failed-desktop-light": 1300,
    "dead-letters-desktop-light": 600,
    "queues-desktop-light": 1000,
    "workers-desktop-light": 800,
    "schedules-desktop-dark": 850,
}


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, height in CHOSEN.items():
        with Image.open(SCREENSHOTS / f"{name}.png") as taken:
            picture = taken.convert("RGB").crop((0, 0, taken.width, min(height, taken.height)))
        path = IMAGES / f"{name}.png"
        picture.quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)
        sys.stdout.write(f"{path.name}  {picture.width}x{picture.height}  {path.stat().st_size // 1024} kB\n")


if __name__ == "__main__":
    main()
