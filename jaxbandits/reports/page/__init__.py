"""The HTML report of sweeps: one page that needs nothing beside it.

`runs` reads what is reported on, `headline`, `tables`, `curves` and `ledgers` say what is shown,
`write` puts it into `template.html`. `uplot/` is a release of uPlot (MIT license, inside), which draws the curves.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"write": ["report"]})
