"""What `jb.plot` has.

A figure owns its canvas and its settings, so nothing leaks into pyplot. `layout` finds room for its texts.
"""

from jaxbandits.reports.layout import Plot, overlaps, save
from jaxbandits.reports.of_sweeps import against, regret, reward
from jaxbandits.reports.of_tables import heatmap, lines, offline, trade_off
from jaxbandits.reports.tuning_plots import importance, parallel, response

__all__ = [
    "Plot", "regret", "reward", "against", "lines", "heatmap", "offline", "trade_off", "response", "parallel",
    "importance", "save", "overlaps",
]  # fmt: skip
