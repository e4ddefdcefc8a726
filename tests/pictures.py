"""Pictures compared with stored ones.

Text is left out and the place of the Axes is fixed, so that fonts and layouts of other versions of
matplotlib do not matter. ``make baselines`` redraws the stored ones: look at them before you
commit them.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text

BASELINES = Path(__file__).parent / "baseline"
REFRESH = os.environ.get("FASTRBHC_BASELINES") == "refresh"

# Root mean square of the differences of pixels, from 0 to 255. Versions 3.8 and 3.11 of matplotlib
# differ by less than 0.01. Another cut gives 11 or more, one colour of another shade 1.1 or more
# wherever it covers more than a few pixels.
TOLERANCE = 1.0


def draw_without_text(draw, path):
    """Write what ``draw`` puts on an Axes to a PNG file, without any text."""
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = Figure(figsize=(4.0, 3.0), dpi=80)
        ax = figure.add_axes((0.08, 0.08, 0.84, 0.84))
        assert draw(ax) is ax
        for text in figure.findobj(Text):
            text.set_visible(False)
        figure.savefig(path, metadata={"Software": None})


def difference(name, draw, directory):
    """The difference from the stored picture as text; None if there is none."""
    stored = BASELINES / f"{name}.png"
    if REFRESH:
        BASELINES.mkdir(exist_ok=True)
        draw_without_text(draw, stored)
    drawn = directory / f"{name}.png"
    draw_without_text(draw, drawn)
    return compare_images(str(stored), str(drawn), TOLERANCE)
