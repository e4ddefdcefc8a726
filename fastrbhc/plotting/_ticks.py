"""Ticks of an axis that shows roots; imported when one is drawn."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import Locator, MaxNLocator


class RootLocator(Locator):
    """Round numbers on an axis that shows the root of each, and that share of it apart at least."""

    def __init__(self, apart: float = 1.0 / 7.0) -> None:
        self.apart = apart

    def __call__(self) -> list[float]:
        """Ticks for what the axis shows."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Ticks from one end to the other."""
        low, high = sorted((vmin, vmax))
        # A part of the axis, which is nearly linear; or negative numbers, which are rare.
        if low > 0.25 * high or low < -0.05 * high:
            return [float(tick) for tick in MaxNLocator(6).tick_values(low, high)]
        gap = self.apart * np.sqrt(high)
        decades = 10.0 ** np.arange(np.floor(np.log10(high)) - 6, np.floor(np.log10(high)) + 1)
        step = max(s for s in np.outer([1.0, 2.0, 5.0], decades).ravel() if s <= high / 2.5)
        numbers = np.concatenate([np.outer([1.0, 2.0, 5.0], decades).ravel(), step * np.arange(6)])
        ticks, reach = [0.0], np.sqrt(high)
        for number in sorted(numbers[numbers <= high], reverse=True):
            root = np.sqrt(number)
            if gap <= root <= reach:
                ticks.append(float(number))
                reach = root - gap
        return sorted(ticks)
