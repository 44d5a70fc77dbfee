"""
A report in one file
====================

Everything about a sweep on one page that needs no network and no Python: the question, curves to point at, paired
differences, tables that sort, privacy, and what to cite. In a terminal it is ``jaxbandits report runs/sweep``.
"""

import html
import tempfile
from pathlib import Path

import jaxbandits as jb

ds = jb.sweep(
    {"UCB1": jb.algorithms.ucb1, "MOSS": jb.algorithms.moss, "AdaP-UCB": jb.algorithms.adap_ucb},
    jb.environments.bernoulli_arms(means=[0.3, 0.5, 0.7]),
    horizon=3000,
    seeds=100,
    grid={"AdaP-UCB.epsilon": [0.5, 2.0]},
    progress=False,
)
path = jb.report(ds, Path(tempfile.mkdtemp()) / "report.html")
figure, data = jb.plot.regret(ds)

# %%
# The page itself, in a frame. Point at a curve, click a name, sort a table.


class Frame:
    """A page inside this page."""

    def _repr_html_(self):
        text = html.escape(path.read_text(encoding="utf-8"))
        return f'<iframe title="The report" srcdoc="{text}" style="width: 100%; height: 40rem; border: 0"></iframe>'


Frame()
