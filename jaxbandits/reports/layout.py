"""How a figure is laid out: its settings, panels, axes, legend and caption, and the file it is written to.

What must fit is measured: titles and labels wrap to their panel, the legend and the caption stand below the axes and
the figure grows by what they need. `overlaps` says whether any two texts collide.
"""

import contextlib
import io
import itertools
import math
import re
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from annotated_doc import Doc
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, Locator, MaxNLocator, NullLocator

from jaxbandits.declared import Kind
from jaxbandits.formatting import compact, minus
from jaxbandits.sweeps.storage.store import write_whole
from jaxbandits.validation import declare, path_of

# matplotlib's settings for every figure, whatever a user's own are
SETTINGS: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same figure everywhere
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "jaxbandits",
    "svg.fonttype": "none",  # text stays text
    "savefig.dpi": 300,
    "savefig.bbox": None,
    "axes.titlelocation": "center",
    "text.usetex": False,
    "text.parse_math": True,
    "mathtext.fontset": "dejavusans",
    "hatch.linewidth": 0.5,
}
# number of panels: columns, width of the figure and height of a row in inches
SHAPES = {1: (1, 3.5, 2.1), 2: (2, 5.5, 1.9), 3: (3, 7.0, 1.8), 4: (2, 5.5, 1.7), 5: (3, 7.0, 1.7), 6: (3, 7.0, 1.7)}

# how keys are written on axes and panels
KEY_NAMES = {
    "epsilon": r"privacy level $\varepsilon$",
    "epsilon_spent": r"$\varepsilon$ spent",
    "delta_spent": r"$\delta$ spent",
    "horizon": "horizon (plays)",
    "window": "window (plays)",
}
# typeset symbols as plain text
SYMBOLS = {r"\varepsilon": "ε", r"\delta": "δ", "−": "-", "\u00a0": " "}
_ONE_AT_A_TIME = threading.RLock()  # matplotlib's settings are one for all threads
BARE = 0.2  # of a vertical axis that may stand above its last tick
APART = 0.25  # the least share of a vertical axis that its lines span, if it is to begin at zero
DISPLAY_PIXELS = 110  # an inch of a figure in a notebook, whatever its resolution

# the colours of Okabe and Ito, without yellow
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")


class Plot(NamedTuple):
    """A figure and the tidy table of what it shows."""

    figure: Figure
    data: pd.DataFrame

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """What a notebook shows: texts are equally large in all figures, and sharp on every screen."""
        wide, tall = (round(inches * DISPLAY_PIXELS) for inches in self.figure.get_size_inches())
        return render(self.figure, "png"), {"width": wide, "height": tall}


@contextlib.contextmanager
def style(**more: object) -> Iterator[None]:
    """matplotlib's settings while a figure is drawn, by one thread at a time: `SETTINGS`, and `more` of them."""
    with _ONE_AT_A_TIME, mpl.rc_context(SETTINGS | more):
        yield


@declare(check=False)
def save(plot: Plot | Figure, path: str | Path) -> None:
    """Write a figure as .png (300 dpi), .pdf (TrueType fonts embedded) or .svg, by the suffix of the path.

    Args:
        plot (Plot or matplotlib figure): What is written.
        path (str or Path): Where, ending in .png, .pdf or .svg. Folders that are missing are made.

    Raises:
        ValueError: For another suffix.

    >>> save(None, "figure.gif")
    Traceback (most recent call last):
    ValueError: path = 'figure.gif' has the suffix '.gif': end it in .png, .pdf or .svg
    """
    place = path_of(path)
    suffix = place.suffix.lower()
    if suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"path = {str(path)!r} has the suffix {suffix!r}: end it in .png, .pdf or .svg")
    content = render(plot.figure if isinstance(plot, Plot) else plot, suffix[1:])
    place.parent.mkdir(parents=True, exist_ok=True)
    write_whole(place, content, "or choose another place")


@declare(check=False)
def overlaps(figure: Annotated[Figure, Kind("matplotlib figure"), Doc("It is drawn once.")]) -> list[str]:
    """Pairs of texts that collide in a figure, and texts that leave it; empty if all is well.

    Tick labels, axis labels, titles, legends and free texts are compared pairwise, and with the panels not their own.

    Returns:
        list of str: One line for each collision.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> _ = figure.text(0.5, 0.5, "one"), figure.text(0.5, 0.5, "two")
    >>> overlaps(figure)
    ["'one' and 'two'"]
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes: list[tuple[str, Any, Any]] = [(repr(x.get_text()), x, None) for x in figure.texts if x.get_text()]
    boxes += [("legend", legend, None) for legend in figure.legends]
    for axes in figure.axes:
        texts = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            texts += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high] + [axis.get_offset_text()]
        boxes += [(repr(text.get_text()), text, axes) for text in texts if text.get_visible() and text.get_text()]
        boxes += [("legend", axes.get_legend(), axes)] if axes.get_legend() else []
    extents = [(name, artist.get_window_extent(canvas.get_renderer()), axes) for name, artist, axes in boxes]
    pairs = itertools.combinations(extents, 2)
    collisions = [f"{a} and {b}" for (a, box, _), (b, other, _) in pairs if _meet(box, other)]
    for name, box, owner in extents:
        collisions += [f"{name} and a panel" for axes in figure.axes if axes is not owner and _meet(box, axes.bbox)]
        if box.x0 < -0.5 or box.y0 < -0.5 or box.x1 > figure.bbox.x1 + 0.5 or box.y1 > figure.bbox.y1 + 0.5:
            collisions.append(f"{name} leaves the figure")
    return collisions


def render(figure: Figure, kind: str) -> bytes:
    """The file's content. It holds no dates: the same data give the same file. A png says its words, too."""
    metadata: dict[str, Any] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
    if kind == "png":
        metadata["Description"] = "\n".join(figure_words(figure))
    out = io.BytesIO()
    with style():
        figure.savefig(out, format=kind, metadata=metadata)
    content, font = out.getvalue(), b"'DejaVu Sans'"
    return content.replace(font, font + b", sans-serif") if kind == "svg" else content


def figure_words(figure: Figure) -> list[str]:
    """The texts of a figure that have letters, each once: names of axes, panels, lines and rows, and the caption.

    Symbols are plain letters, and units are left out.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> _ = figure.text(0, 0, "regret\\nof an agent"), figure.text(1, 1, "10")
    >>> figure_words(figure)
    ['regret of an agent']
    """
    with style():
        figure.draw_without_rendering()
    texts: list[Any] = figure.findobj(Text)
    shown = (plain_text(" ".join(text.get_text().split())) for text in texts if text.get_visible())
    return list(dict.fromkeys(text for text in shown if any(letter.isalpha() for letter in text)))


def plain_text(text: str) -> str:
    """A text without typesetting and without the unit of regret.

    >>> plain_text(r"privacy level $\\varepsilon$ = −1"), plain_text("cumulative regret (in rewards)")
    ('privacy level ε = -1', 'cumulative regret')
    """
    text = re.sub(r"\$([^$]*)\$", r"\1", text)
    for symbol, letter in SYMBOLS.items():
        text = text.replace(symbol, letter)
    return re.sub(r" \(in (rewards|losses|right answers)\)", "", text)


@dataclass
class Panel:
    """The axes of a figure, and what stands around them: titles, names, legend, caption and file."""

    caption: str | Literal[False]  # added to what a figure says of itself; False: no caption
    width: float | None
    ax: Any  # the axes of a user's figure, one for each panel, if any are given
    path: str | Path | None
    names: Mapping[str, str] | None = None  # of keys, other than `key_words`
    axes: list[Any] = field(default_factory=list)

    def words_of(self, key: Any) -> str:
        """How a key is written on an axis or a panel."""
        return (self.names or {}).get(str(key), key_words(key))

    def lay_out(self, count: int) -> list[Any]:
        """The `count` axes (one to six, see `SHAPES`) of a figure of its own, `width` inches wide; or those of `ax`."""
        if self.ax is not None:
            self.axes = list(np.ravel(np.asarray(self.ax, dtype=object)))
            if len(self.axes) != count or not all(hasattr(axes, "get_xlim") for axes in self.axes):
                needed = "one axes" if count == 1 else f"a sequence of {count} axes"
                has = f"{count} panel{'s' * (count > 1)} and {len(self.axes)} given"
                raise ValueError(f"ax: the figure has {has}: give {needed}")
            if self.width is not None:
                remedy = "the figure of ax is yours, and so is its width: leave one out"
                raise ValueError(f"width = {self.width:g}: {remedy}")
            return self.axes

        columns, wide, tall = SHAPES[count]
        rows = math.ceil(count / columns)
        figure = Figure(figsize=(self.width or wide, rows * tall))
        FigureCanvasAgg(figure)
        cells = list(figure.subplots(rows, columns, squeeze=False).flat)
        self.axes = cells[:count]
        for axes in cells[count:]:
            axes.remove()
        for axes in self.axes:
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(color="0.92", linewidth=0.5)
            axes.set_axisbelow(True)
        return self.axes

    def split_rows(
        self, frame: pd.DataFrame, key: Any, values: Iterable[Any], title: Callable[[Any], str]
    ) -> Iterator[tuple[Any, Any, pd.DataFrame]]:
        """The axes, the value and the rows of each value of a key; without a key all rows, and None for the value."""
        values = [None] if key is None else list(values)
        for axes, value in zip(self.lay_out(len(values)), values, strict=True):
            if key is not None:
                axes.set_title(title(value))
            yield axes, value, frame if key is None else frame[frame[key] == value]

    def complete(
        self, table: pd.DataFrame, x: str, y: str, order: Sequence[str], about: str = "", *,
        words: Mapping[str, str] = MappingProxyType({}), shared: bool = True,
    ) -> Plot:  # fmt: skip
        """The figure with names of its axes, legend and caption, and its table; written to `path` where one is given.

        order: the labels of the legend, of which it says `words[label]` where there are such. about: what the caption
        begins with. shared: all panels have the limits of the first.
        """
        self._name_axes(x, y, shared)
        self._add_legend(order, words, "" if self.caption is False else "; ".join(filter(None, (about, self.caption))))
        plot = Plot(self.axes[0].figure.figure, table.reset_index(drop=True))
        if self.path is not None:
            save(plot, self.path)
        return plot

    def _name_axes(self, x: str, y: str, shared: bool) -> None:
        """Label the outer panels' axes. With `shared` limits, which a user then changes for all of them at once, the
        inner ones lose their vertical tick labels too.
        """
        panels, figure = self.axes, self.axes[0].figure.figure
        rows, columns = _grid(panels[0])
        wide, tall = 0.7 * figure.get_figwidth() / columns, 0.6 * figure.get_figheight() / rows
        for i, axes in enumerate(panels):
            axes.set_title(_wrap(figure, axes.get_title(), wide, SETTINGS["axes.titlesize"]))
            if i + columns >= len(panels):
                axes.set_xlabel(_wrap(figure, x, wide, SETTINGS["axes.labelsize"]))
            if i % columns == 0:
                axes.set_ylabel(_wrap(figure, y, tall, SETTINGS["axes.labelsize"]))
            elif shared:
                axes.tick_params(labelleft=False)
        if shared:
            limits = {axes.get_ylim() for axes in panels}
            for axes in panels[1:]:
                with contextlib.suppress(ValueError):  # a user's axes may share theirs with others
                    axes.sharey(panels[0])
            if len(limits) > 1:  # of what each panel has beside the lines of all
                panels[0].set_ylim(min(low for low, _ in limits), max(high for _, high in limits))

    def _add_legend(self, order: Sequence[str], words: Mapping[str, str], text: str) -> None:
        """Put legend and caption below the panels; the figure grows by what they need.

        Axes of a user's figure get a legend of their own, no caption, and all else of their figure stays as it is.
        """
        axes, known = self.axes[0], dict[str, Any]()
        for one in reversed(self.axes):  # a line may be missing in the first
            known |= {handle.get_label(): handle for handle in (*one.patches, *one.lines, *one.containers)}  # also "_x"
        order = [x for x in order if x in known]  # nothing is drawn of what is NaN everywhere
        handles, labels = [known[x] for x in order], [words.get(x, x) for x in order]
        if self.ax is not None:
            axes.legend(handles, labels, frameon=False)
            return
        figure = axes.figure.figure
        wide, tall = figure.get_size_inches()
        gap, dpi = 0.06, figure.dpi
        text = _wrap(figure, text, wide - 0.2, 7)
        below = figure.text(0.5, 0, text, fontsize=7, ha="center", va="bottom", color="0.25")
        labels = [_wrap(figure, label, wide - 0.7, 7) for label in labels]
        size: Any = None
        for most in range(min(len(labels), 4), 0, -1):
            columns = math.ceil(len(labels) / math.ceil(len(labels) / most))  # no row holds one where others are full
            looks = {"frameon": False, "borderpad": 0, "borderaxespad": 0, "handlelength": 2.8}
            legend = figure.legend(handles, labels, loc="lower center", ncols=columns, **looks)
            size = legend.get_window_extent(figure.canvas.get_renderer())
            if size.width <= (wide - 0.1) * dpi or columns == 1:
                break
            legend.remove()
        tall_text = below.get_window_extent(figure.canvas.get_renderer()).height / dpi if text else -gap
        foot = gap + tall_text + gap
        head = foot + (size.height / dpi + gap if order else 0.0)
        tall += head
        figure.set_size_inches(wide, tall)
        below.set_y(gap / tall)
        if order:
            legend.set_bbox_to_anchor((0.5, foot / tall))
        figure.set_layout_engine("constrained", rect=(0, head / tall, 1, 1 - head / tall))
        figure.canvas.draw()
        figure.set_layout_engine("none")  # keep these places: drawing again, at another dpi too, moves nothing


def axis(
    axis: Any, values: Any, log: bool, *, also: Iterable[Any] = (), ticks: Iterable[float] | None = None,
    infinity: float | None = None, linear: float | None = None, zero: bool = True,
) -> None:  # fmt: skip
    """Set the scale, the limits and few ticks of an axis. Limits that are set later get ticks of their own.

    `values [..., 3]` are centre, low, high, or all centres. `also` may widen the limits by a factor of 3, 30 if log.
    `infinity` is where an infinite value is drawn. `linear`: the axis is linear up to here, and logarithmic above.
    `zero`: an upright one shows zero, even where lines would lie on one another.
    """
    values = np.asarray(values, np.float64)
    centre = values[..., 0] if values.ndim > 1 else values
    values, centre = (x[np.isfinite(x) & ((x > 0) | (not log))] for x in (values, centre))
    low, high = (values.min(), values.max()) if values.size else (1.0, 10.0) if log else (0.0, 1.0)
    if log and centre.size:
        low = max(low, centre.min() / 3)  # an interval that nearly reaches zero would stretch the axis over decades
    for y in (y[np.isfinite(y)] for y in also):
        factor = 30 if log or linear else 3
        if y.size:
            low, high = min(low, max(y.min(), low / factor)), max(high, min(y.max(), high * factor))
    if not log and axis.axis_name == "y" and (zero or high - low > APART * max(abs(low), abs(high))):
        low, high = min(low, 0.0), max(high, 0.0)
    go, back = (math.log, math.exp) if log else (float, float) if linear is None else _partly_linear(linear)
    pad = 0.05 * (go(high) - go(low)) or 0.5 * (min(low, 1.0) if log else abs(low) or 1.0)
    low, high = back(go(low) - pad), back(go(high) + pad)
    regular = ticks is None
    ticks = list(_ticks(low, high, log, linear) if ticks is None else ticks)
    if axis.axis_name == "y" and regular and (top := _next_tick(ticks, low, high, log or linear is not None, go)):
        ticks, high = [*ticks, top], max(high, top)
    set_scale = getattr(axis.axes, f"set_{axis.axis_name}scale")
    if linear is None:
        set_scale("log" if log else "linear")
    else:
        set_scale("symlog", linthresh=linear, linscale=1.0)
    axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})
    labels = {x: minus(compact(x)) for x in ticks}
    if axis.axis_name == "x":
        ticks = _thin(ticks, labels, lambda x: (go(x) - go(low)) / (go(high) - go(low)), axis.axes, regular)
    if infinity is not None:
        ticks, labels[infinity], high = [*ticks, infinity], "∞", back(go(infinity) + pad)
        axis.axes.set_xlim(low, high)
    axis.set_major_locator(_locator(axis, ticks, log, linear) if regular else FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: labels.get(x, minus(compact(x)))))
    axis.set_minor_locator(NullLocator())


def _partly_linear(linear: float) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Places on an axis that is linear up to here and logarithmic above, in decades, and the way back."""

    def go(x: float) -> float:
        return x / linear if abs(x) <= linear else math.copysign(1 + math.log10(abs(x) / linear), x)

    def back(y: float) -> float:
        return y * linear if abs(y) <= 1 else math.copysign(linear * 10 ** (abs(y) - 1), y)

    return go, back


def _locator(axis: Any, ticks: list[float], log: bool, linear: float | None) -> Locator:
    """Ticks that are these between the limits of now, and a few round ones between others."""
    first = tuple(axis.get_view_interval())

    class Few(Locator):
        def __call__(self) -> Any:
            return self.tick_values(*axis.get_view_interval())

        def tick_values(self, vmin: float, vmax: float) -> Any:
            low, high = min(vmin, vmax), max(vmin, vmax)
            return np.array(ticks if (vmin, vmax) == first or (log and low <= 0) else _ticks(low, high, log, linear))

    return Few()


def key_words(key: Any) -> str:
    """How a key is written on an axis or a panel.

    >>> key_words("reward_adversary.corruption")
    'reward adversary: corruption'
    """
    if key in KEY_NAMES:
        return KEY_NAMES[key]
    label, *inside = re.split(r"\.(?=[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$)", str(key))
    if not inside or label in ("reward_adversary", "message_adversary"):
        label = label.replace("_", " ")  # of an argument or a part; a user's label stays
    return ": ".join([label, *(x.replace("_", " ") for x in inside)])


def _grid(axes: Axes) -> tuple[int, int]:
    """Rows and columns of the panels that axes are one of; a user's own axes may stand alone."""
    spec = axes.get_subplotspec()
    return (1, 1) if spec is None else (spec.get_gridspec().nrows, spec.get_gridspec().ncols)


def _next_tick(ticks: list[float], low: float, high: float, log: bool, go: Callable[[float], float]) -> float | None:
    """A round number at about the upper end of an axis whose last tick is far below it."""
    span = go(high) - go(low)
    if len(ticks) < 2 or go(high) - go(ticks[-1]) <= BARE * span:
        return None
    decade = 10.0 ** math.floor(math.log10(high)) if log else 1.0
    top = min(m * decade for m in (1, 2, 3, 5, 10) if m * decade >= high) if log else 2 * ticks[-1] - ticks[-2]
    return float(f"{top:.9g}") if go(top) - go(high) <= BARE * span else None


def _ticks(low: float, high: float, log: bool, linear: float | None = None) -> list[float]:
    if linear is not None:
        above = _ticks(linear, high, True) if high > 10 * linear else [linear] if high >= linear else []
        if not above:
            return _ticks(low, high, False)
        below = [-x for x in _ticks(linear, -low, True)[::-1]] if low < -10 * linear else []
        return [*below, *([0.0] if low <= 0 <= high else []), *above]
    if log:
        decades = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1,), (1, 3), (1, 2, 5)):
            ticks = [float(f"{m}e{k}") for k in decades for m in steps if low <= float(f"{m}e{k}") <= high]
            if len(ticks) >= 3:
                return ticks[:: math.ceil(len(ticks) / 6)]
    locator = MaxNLocator(4) if log else MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    return [x for x in locator.tick_values(low, high) if low <= x <= high]


def _thin(
    ticks: list[float], labels: dict[float, str], place: Callable[[float], float], axes: Axes, regular: bool
) -> list[float]:
    """Ticks whose labels do not touch: every n-th of a regular series, else all that fit, from the left."""
    inches = 0.72 * axes.figure.figure.get_figwidth() / _grid(axes)[1]  # what margins leave of a panel's column
    em = SETTINGS["xtick.labelsize"] / 72 / inches
    half = {x: 0.5 * (len(labels[x]) * 0.64 + 0.6) * em for x in ticks}  # a digit is 0.64 em wide
    for stride in range(1, len(ticks) + 1):
        shown: list[float] = []
        for x in ticks[::stride]:
            if not shown or place(x) - half[x] >= place(shown[-1]) + half[shown[-1]]:
                shown.append(x)
        if not regular or len(shown) == len(ticks[::stride]):
            break
    return shown if ticks else []


def _wrap(figure: Any, text: str, inches: float, size: float) -> str:
    """A text with line breaks so that it is at most so many inches wide."""
    canvas = figure.canvas  # a user's figure may have one that draws no pixels
    renderer = canvas.get_renderer() if hasattr(canvas, "get_renderer") else RendererAgg(100, 100, figure.dpi)
    for width in range(max(len(text), 1), 0, -1):
        wrapped = "\n".join(textwrap.wrap(text, width, break_long_words="$" not in text))
        probe = figure.text(0, 0, wrapped, fontsize=size)
        measured = probe.get_window_extent(renderer).width / figure.dpi
        probe.remove()
        if measured <= inches:
            break
    return wrapped


def _meet(a: Any, b: Any) -> bool:
    """Whether two boxes overlap."""
    return bool(min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0))
