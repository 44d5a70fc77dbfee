"""Figures: what they show is in their data, no text collides, and the files are what they say."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import lines
from matplotlib.figure import Figure
from matplotlib.text import Text

import jaxbandits as jb
from jaxbandits import statistics
from jaxbandits.reports import layout, of_sweeps, plot

TIMES = np.unique(np.geomspace(1, 20_000, 60).astype(int))
SHORT = ["EXP3", "EXP3 (theory)", "UCB1"]
LONG = [
    "one noise per play (theory)",
    "batched, one noise per batch (tuned)",
    "locally private EXP4 with 40 experts",
    "HTINF",
    "uniform",
    "an algorithm whose label is a whole sentence and cannot fit the width of a paper's column at all",
    "EXP3",
]


def result(labels, grid=None, *, seeds=20, exponents=None, constant=None):
    """Lognormal lanes of t ** exponent, smaller for larger keys."""
    grid = grid or {}
    shape = (len(labels), *map(len, grid.values()), seeds, len(TIMES))
    exponents = np.linspace(0.4, 0.8, len(labels)) if exponents is None else np.asarray(exponents)
    lanes = np.random.default_rng(5).lognormal(0.0, 0.3, shape[:-1])[..., None]
    values = lanes * TIMES ** exponents.reshape(-1, *[1] * (len(shape) - 1))
    ds = xr.Dataset(
        {"regret": (("algorithm", *grid, "seed", "t"), values)},
        {"algorithm": labels, **grid, "seed": np.arange(seeds), "t": TIMES},
        {"constant_along": json.dumps(constant or {})},
    )
    return ds


def texts(figure):
    return [t for t in figure.findobj(Text) if t.get_text().strip() and t.get_visible()]


@pytest.mark.parametrize("labels", [["EXP3"], SHORT, LONG], ids=["one", "three", "seven long"])
@pytest.mark.parametrize("log", ["none", "both"])
def test_a_single_panel_has_room_for_all_texts(labels, log):
    drawn = plot.regret(result(labels), log=log, caption="four Bernoulli arms " * 8)
    assert plot.overlaps(drawn.figure) == []
    assert drawn.figure.get_figwidth() == 3.5
    assert min(t.get_fontsize() for t in texts(drawn.figure)) >= 7
    assert {t.get_text().replace("\n", " ") for t in drawn.figure.legends[0].get_texts()} == set(labels)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_panels_have_room_and_one_value_each(count):
    values = [0.05, 0.1, 0.2, 0.5, 1.0, float("inf")][-count:]
    drawn = plot.regret(result(LONG, {"epsilon": values}))
    assert plot.overlaps(drawn.figure) == []
    titles = [axes.get_title().split("= ")[-1].strip() for axes in drawn.figure.axes]
    assert titles == ["∞" if np.isinf(v) else f"{v:g}" for v in values]
    assert len({a.get_ylim() for a in drawn.figure.axes}) == 1


def test_axes_of_one_value_of_nothing_and_below_zero():
    """One value above 709, the largest exponent of e; nothing that a logarithmic axis shows; rewards below zero."""
    for draw in (
        lambda: plot.against(result(["a"], {"window": [5000.0, np.inf]}), "window"),
        lambda: plot.regret(result(["a"]).isel(t=[-1]).assign_coords(t=[10_000]), log="both"),
        lambda: plot.heatmap(pd.DataFrame({"x": [5000, 5000], "y": [1.0, 2.0], "v": [1.0, 2.0]}), "x", "y", "v"),
        lambda: plot.against(result(["a"], {"k": [1.0, 2.0]}) * np.inf, "k"),
    ):
        assert plot.overlaps(draw().figure) == []
    low, high = plot.against(result(["a"], {"window": [5000.0, np.inf]}), "window").figure.axes[0].get_xlim()
    assert 1000 < low < 5000 < high < 50_000
    frame = pd.DataFrame({"x": [5000, 5000], "y": [-1.0, 0.0], "l": ["a", "b"]})
    assert plot.lines(frame, "x", "y", line="l", log="x").figure.axes[0].get_xlim()[0] > 1000
    with pytest.raises(ValueError, match="log = 'both' needs a positive number in column 'y', and there is none"):
        plot.lines(frame, "x", "y", line="l", log="both")
    axes = Figure().subplots()
    layout.axis(axes.yaxis, np.array([-10.913, -9.167]), False, zero=False)
    assert axes.get_ylim()[0] < -10.913 < -9.167 < axes.get_ylim()[1] < 0
    values, best = np.array([[[0.0, 1.0, 2.0]] * 4]), ("t", [-91.0, -9.0, -2.0])
    coords = {"algorithm": ["a"], "seed": range(4), "t": [10, 20, 50]}
    below = xr.Dataset({"regret": (tuple(coords), values), "best_reward": best}, coords)
    for total in (False, True):
        assert plot.reward(below, total=total).data["centre"].max() < 0


def test_settings_of_others_and_threads_do_not_reach_a_picture():
    ds, before = result(["a"], {"epsilon": [0.1, 0.1000001]}), dict(mpl.rcParams)
    plain = plot.regret(ds)
    titles = [axes.get_title() for axes in plain.figure.axes]
    assert len({*titles}) == 2 and all("0.1" in title for title in titles)  # values that are near are told apart
    with mpl.rc_context({"axes.titlelocation": "left", "text.parse_math": False}):
        drawn = plot.regret(ds)
        assert [axes.get_title() for axes in drawn.figure.axes] == titles
        assert layout.render(drawn.figure, "svg") == layout.render(plain.figure, "svg")
    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(plot.regret, ds) for _ in range(8)]:
            assert [axes.get_title() for axes in job.result().figure.axes] == titles
    assert dict(mpl.rcParams) == before


def test_every_colour_of_a_map_is_named_once():
    points = pd.MultiIndex.from_product([[1, 2], [1, 2]], names=["x", "y"]).to_frame(index=False)
    with pytest.raises(ValueError, match=r"a cell has several rows \(x = 1, y = 1\): tell them apart with `panel`"):
        plot.heatmap(pd.concat([points, points]).assign(v=1.0), "x", "y", "v")
    colours = lambda axes: {mpl.colors.to_hex(x.get_facecolor()) for x in axes.patches if x.get_width() > 0}
    cuts = {"cuts": [1000, 1004, 1008, 1125]}
    for values, more in (([1000, 1010, 1020, 1050], {}), ([1000] * 4, {}), ([1001, 1005, 1009, 1120], cuts)):
        drawn = plot.heatmap(points.assign(v=np.array(values, float)), "x", "y", "v", **more)
        (legend,) = drawn.figure.legends
        texts = [text.get_text() for text in legend.get_texts()]
        named = {mpl.colors.to_hex(patch.get_facecolor()) for patch in legend.get_patches()}
        assert colours(drawn.figure.axes[0]) <= named and len({*texts}) == len(texts)
        assert all(f"{cut:,}" in " ".join(texts) for cut in more.get("cuts", ()))
    nine = pd.DataFrame({"x": range(9), "y": 1, "v": list("abcdefghi")})
    assert len(colours(plot.heatmap(nine, "x", "y", "v").figure.axes[0])) == 9


def test_a_label_stands_on_an_axis_as_it_is():
    words = [layout.key_words(f"{label}.bonus_scale") for label in ("my ucb", "my_ucb", "eps 0.5", "UCB$_1$")]
    assert words == ["my ucb: bonus scale", "my_ucb: bonus scale", "eps 0.5: bonus scale", "UCB$_1$: bonus scale"]
    for key, words in {
        "reward_adversary.corruption": "reward adversary: corruption", "noise_scale": "noise scale",
        "environment.noise_scale": "environment: noise scale", "a_b.base.learning_rate": "a_b: base: learning rate",
    }.items():  # fmt: skip
        assert layout.key_words(key) == words


def test_named_panels_with_long_names():
    names = ["easy", "a hard instance with a very long name", "three"]
    drawn = plot.regret(result(SHORT, {"environment.means": names}))
    assert plot.overlaps(drawn.figure) == []
    assert drawn.figure.axes[1].get_title().replace("\n", " ").endswith(names[1])


@pytest.mark.planted("a figure", "labels over each other, text beyond the edge")
def test_the_checker_sees_planted_faults():
    figure = Figure()
    axes = figure.subplots()
    axes.set_xlim(0, 1)
    axes.set_xticks([0.5, 0.51], ["left label", "right label"])
    figure.text(0.99, 0.5, "beyond the edge")
    found = plot.overlaps(figure)
    assert "'left label' and 'right label'" in found and "'beyond the edge' leaves the figure" in found
    axes.set_xticks([0.2, 0.8])
    figure.texts[0].remove()
    assert plot.overlaps(figure) == []


def test_the_checker_sees_a_shrunken_figure():
    figure = plot.regret(result(LONG)).figure
    figure.set_size_inches(3.5, 1.5)
    assert plot.overlaps(figure)


def test_regret_data_is_what_the_lines_show():
    ds = result(SHORT, {"epsilon": [0.1, 1.0]})
    drawn = plot.regret(ds, select={"epsilon": 1.0, "algorithm": ["UCB1", "EXP3"]}, log="none")
    lanes = ds["regret"].sel(algorithm="UCB1", epsilon=1.0).values
    mine = drawn.data[drawn.data["algorithm"] == "UCB1"]
    for column, expected in zip(["centre", "low", "high"], statistics.mean_interval(lanes.T), strict=True):
        np.testing.assert_allclose(mine[column], expected)
    line = {x.get_label(): x for x in drawn.figure.axes[0].get_lines()}
    assert set(line) == {"UCB1", "EXP3"}
    np.testing.assert_allclose(line["UCB1"].get_ydata(), mine["centre"])
    single = plot.regret(ds, select={"epsilon": 1.0, "algorithm": "UCB1"})
    np.testing.assert_allclose(single.data["centre"], mine["centre"])


def test_regret_dots_a_partner_in_its_colour():
    ds = result(["EXP3 (theory)", "UCB1", "EXP3"], {"epsilon": [0.1, 1.0]})
    for dotted in (["EXP3 (theory)"], {"EXP3 (theory)": "EXP3"}):
        drawn = plot.regret(ds, dotted=dotted)
        for axes in drawn.figure.axes:
            line = {x.get_label(): x for x in axes.get_lines()}
            theory, main, other = line["EXP3 (theory)"], line["EXP3"], line["UCB1"]
            assert theory.get_color() == main.get_color() != other.get_color()
            assert theory.get_linestyle() == ":" and ":" not in (main.get_linestyle(), other.get_linestyle())
        assert [t.get_text() for t in drawn.figure.legends[0].get_texts()] == ds["algorithm"].values.tolist()
        assert plot.overlaps(drawn.figure) == []


def test_quantile_bands_and_their_caption():
    ds = result(["EXP3"])
    data = plot.regret(ds, bands="quantile").data
    np.testing.assert_allclose(data["high"], np.quantile(ds["regret"].values[0], 0.95, axis=0))

    def captions(**kwargs):
        return plot.regret(result(["EXP3"], seeds=1200), **kwargs).figure.texts[0].get_text().replace("\n", " ")

    assert captions(caption="ten arms") == "mean and 95% interval over 1,200 seeds; ten arms"
    assert captions(bands="quantile") == "median and 5% to 95% band over 1,200 seeds"
    assert plot.regret(result(["EXP3"], seeds=1)).figure.texts[0].get_text() == "one seed, hence no interval"
    for seeds, bands, few in ((29, "interval", True), (30, "interval", False), (29, "quantile", False)):
        said = plot.regret(result(["EXP3"], seeds=seeds), bands=bands).figure.texts[0].get_text().replace("\n", " ")
        assert said.endswith(f"over {seeds} seeds{' (few: it may miss more often)' * few}")


def test_a_caption_says_the_keys_of_one_value():
    ds = result(["EXP3"], {"epsilon": [0.5], "window": [1, 2], "horizon": [20_000]}, seeds=40)
    for drawn in (plot.regret(ds), plot.against(ds, "window")):
        said = " ".join(drawn.figure.texts[0].get_text().split())
        assert said == r"mean and 95% interval over 40 seeds; privacy level $\varepsilon$ = 0.5"
    two = plot.regret(ds, select={"window": [2]}).figure.texts[0].get_text()
    assert "= 0.5; window (plays) = 2" in " ".join(two.split())
    assert "window" not in plot.regret(ds, select={"window": 2}).figure.texts[0].get_text()


def test_no_two_lines_have_a_marker_at_the_same_place():
    drawn = plot.regret(result(["a", "b", "c"], exponents=[0.5, 0.5, 0.5], seeds=2), log="none", width=7)
    drawn.figure.canvas.draw()
    first = []
    for line in drawn.figure.axes[0].get_lines():
        path, affine = line._transformed_path.get_transformed_path_and_affine()
        marks = lines._mark_every_path(line.get_markevery(), path, affine, line.axes).vertices
        first.append(affine.transform(marks)[0][0] - affine.transform(path.vertices)[0][0])
    assert min(np.diff([0.0, *first])) > 5  # pixels, also from the first play
    one = plot.regret(result(["a"]).isel(t=[7])).figure.axes[0].get_lines()[0]
    assert one.get_markevery() is None and one.get_marker() == "o"


def test_time_is_linear_and_regret_logarithmic_above_the_smallest_end_where_ends_differ_thirtyfold():
    near, far = result(SHORT, exponents=[0.5, 0.52, 0.54]), result(SHORT, exponents=[0.3, 0.5, 0.8])
    scales = {}
    for ds, log in ((near, None), (far, None), (far, "none"), (far, "both")):
        drawn = plot.regret(ds, log=log)
        axes = drawn.figure.axes[0]
        scales[ds is far, log] = axes.get_xscale(), axes.get_yscale()
        assert not plot.overlaps(drawn.figure)
        if axes.get_yscale() == "symlog":
            ends = drawn.data[drawn.data["t"] == TIMES[-1]]["centre"]
            linear = axes.yaxis.get_transform().linthresh
            assert linear <= ends.min() < 10 * linear and axes.get_ylim()[0] <= 0
            assert axes.get_yticks()[:2].tolist() == [0.0, linear]
    assert scales == {
        (False, None): ("linear", "linear"), (True, None): ("linear", "symlog"), (True, "none"): ("linear", "linear"),
        (True, "both"): ("log", "log"),
    }  # fmt: skip


@pytest.mark.parametrize("log", ["none", "both"])
def test_limits_that_a_user_sets_have_ticks(log):
    axes = plot.regret(result(SHORT), log=log).figure.axes[0]
    before = [text.get_text() for text in axes.get_yticklabels()]
    for limits in ((1.0, 7.0), (2_000.0, 900_000.0)):
        axes.set(xlim=limits, ylim=limits)
        for axis in (axes.xaxis, axes.yaxis):
            inside = [tick for tick in axis.get_majorticklocs() if limits[0] <= tick <= limits[1]]
            assert len(inside) >= 2
        axes.figure.draw_without_rendering()
        assert [text.get_text() for text in axes.get_yticklabels()] != before


def test_panels_without_labels_have_the_axis_of_the_first():
    drawn = plot.regret(result(SHORT, {"epsilon": [0.1, 1.0, 4.0]}))
    first, *others = drawn.figure.axes
    first.set_ylim(0.0, 3.0)
    assert {axes.get_ylim() for axes in others} == {(0.0, 3.0)} and not plot.overlaps(drawn.figure)
    own = plot.regret(result(SHORT, {"horizon": [int(TIMES[30]), int(TIMES[-1])]})).figure.axes
    assert own[0].get_ylim() != own[1].get_ylim()


def test_the_last_tick_of_an_upright_axis_is_near_its_end():
    for top in (9.7, 35.0, 61.0, 95.0, 190.0, 420.0, 780.0, 1e6):
        for low in (0.5, 3.0, 8.0):
            ds = result(["a", "b"], {"epsilon": [0.1, 1.0]})
            ds["regret"][..., -1] = np.array([low, top])[:, None, None]
            axes = plot.against(ds, "epsilon").figure.axes[0]
            go = np.log if axes.get_yscale() == "log" else float
            ends, last = axes.get_ylim(), max(axes.get_yticks())
            assert go(ends[1]) - go(last) <= 0.3 * (go(ends[1]) - go(ends[0])), (low, top)


@pytest.mark.parametrize("count", range(1, 12))
def test_no_row_of_a_legend_holds_one_line_beside_full_rows(count):
    drawn = plot.regret(result([f"a{i}" for i in range(count)]))
    legend = drawn.figure.legends[0]
    columns, rows = legend._ncols, -(-count // legend._ncols)
    assert columns * rows - count < rows and not plot.overlaps(drawn.figure)


def test_zero_regret_stays_in_the_data_and_off_the_logarithmic_axis():
    ds = result(SHORT)
    ds["regret"][..., :3] = 0.0
    drawn = plot.regret(ds, log="both")
    assert (drawn.data["centre"] == 0).sum() == 9
    assert all(np.isnan(line.get_ydata()[:3]).all() for line in drawn.figure.axes[0].get_lines())
    assert drawn.figure.axes[0].get_ylim()[0] > 0.01 and plot.overlaps(drawn.figure) == []


def test_a_horizon_ends_its_own_panel():
    ds = result(SHORT, {"horizon": [int(TIMES[30]), int(TIMES[-1])]})
    ds["regret"][:, 0, :, 31:] = np.nan
    drawn = plot.regret(ds)
    left, right = drawn.figure.axes
    assert left.get_xlim()[1] < right.get_xlim()[1] and plot.overlaps(drawn.figure) == []
    assert plot.regret(ds, select={"horizon": int(TIMES[30])}).data["t"].max() == TIMES[30]
    assert np.isfinite(plot.against(ds, "horizon").data["centre"]).all()


def test_against_draws_points_constants_partners_and_orders():
    keys = [0.1, 0.5, 2.0, float("inf")]
    ds = result(SHORT, {"epsilon": keys}, constant={"UCB1": ["epsilon"]})
    drawn = plot.against(ds, "epsilon", dotted=["EXP3 (theory)"], reference={"order 1/ε": lambda e: 10 / e})
    axes = drawn.figure.axes[0]
    assert plot.overlaps(drawn.figure) == [] and (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [t.get_text() for t in drawn.figure.legends[0].get_texts()] == [*SHORT, "order 1/ε"]
    lines = {c.get_label(): c.lines[0] for c in axes.containers}
    main, partner = lines["EXP3"], lines["EXP3 (theory)"]
    assert main.get_color() == partner.get_color() and partner.get_linestyle() == ":" != main.get_linestyle()
    assert len(set(next(x for x in axes.get_lines() if x.get_label() == "UCB1").get_ydata())) == 1
    final = statistics.summary(ds).set_index(["algorithm", "epsilon"])["mean"]
    own = drawn.data[drawn.data["kind"] == "algorithm"].set_index(["algorithm", "epsilon"])["centre"]
    np.testing.assert_allclose(own[final.index], final)
    order = drawn.data[drawn.data["kind"] == "reference"]
    np.testing.assert_allclose(order["centre"] * order["epsilon"], 10.0)
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0.1", "0.5", "2", "∞"]
    many = plot.against(result(SHORT, {"epsilon": [*np.geomspace(0.01, 3, 12), np.inf]}), "epsilon").figure
    assert [t.get_text() for t in many.axes[0].get_xticklabels()] == ["0.01", "0.1", "1", "∞"]
    assert plot.overlaps(many) == []


def test_axes_of_far_away_orders_and_of_keys_with_zero():
    ds = result(SHORT, {"epsilon": [0.1, 1.0]})
    near = plot.against(ds, "epsilon").figure.axes[0].get_ylim()
    far = plot.against(ds, "epsilon", reference={"order": lambda e: 1e-6 / e}).figure.axes[0].get_ylim()
    assert near[0] / 50 < far[0] < near[0] and far[1] < 4 * near[1]  # thirtyfold and the margin
    drawn = plot.against(result(LONG, {"corruption_bound": [0.0, 0.02, 0.05]}), "corruption_bound")
    assert drawn.figure.axes[0].get_xscale() == "linear" and plot.overlaps(drawn.figure) == []


@pytest.mark.parametrize("keys", [np.geomspace(1e-5, 10, 25), np.array([1, 2, 10**6]), np.array([0.1, 0.101, 0.2])])
def test_against_has_few_ticks(keys):
    drawn = plot.against(result(SHORT, {"window": keys}), "window")
    assert plot.overlaps(drawn.figure) == []
    assert 2 <= len(drawn.figure.axes[0].get_xticks()) <= 8


@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")])
def test_files_are_written_and_repeatable(tmp_path, suffix, magic):
    path, again = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    plot.save(plot.regret(result(SHORT), path=path), again)
    content = path.read_bytes()
    assert content.startswith(magic) and content == again.read_bytes()
    if suffix == ".png":
        assert int.from_bytes(content[16:20], "big") == 3.5 * 300  # the header's width in pixels
    if suffix == ".svg":
        assert all(f">{name}</text>".encode() in content for name in SHORT) and b"'DejaVu Sans', sans-serif" in content
    if suffix == ".pdf":
        assert b"/FontFile2" in content and b"/Type3" not in content  # TrueType
    assert b"CreationDate" not in content and b"dc:date" not in content


def test_folders_of_a_picture_are_made(tmp_path):
    jb.plot.regret(result(SHORT), path=tmp_path / "none" / "yet" / "x.png")
    assert (tmp_path / "none" / "yet" / "x.png").stat().st_size > 1000


def test_nothing_leaks_out_of_a_figure():
    before = dict(mpl.rcParams)
    modules = "matplotlib.pyplot" in sys.modules
    plot.regret(result(SHORT))
    assert dict(mpl.rcParams) == before and ("matplotlib.pyplot" in sys.modules) == modules


@pytest.mark.parametrize("bands", ["interval", "quantile"])
def test_a_large_dataset_is_reduced_in_blocks(monkeypatch, bands):
    ds = result(SHORT, {"epsilon": [0.1, 1.0]})
    whole = plot.regret(ds, bands=bands).data
    monkeypatch.setattr(of_sweeps, "BLOCK_BYTES", 7000)
    in_blocks = plot.regret(ds, bands=bands).data
    np.testing.assert_allclose(in_blocks[["centre", "low", "high"]], whole[["centre", "low", "high"]], rtol=1e-12)
    assert in_blocks[["algorithm", "epsilon", "t"]].equals(whole[["algorithm", "epsilon", "t"]])


def cells(columns=4, rows=3):
    points = [(4.0**i, 10.0**-j) for i in range(columns) for j in range(rows)]
    frame = pd.DataFrame(points, columns=["num_experts", "epsilon"])
    frame["regret"], frame["bad"] = np.arange(1.0, len(frame) + 1) ** 2, frame["epsilon"] < 0.5
    names = np.where(frame["regret"] > 20, "a winner with a long name", "local")
    return frame.assign(name=names, text=frame["regret"].map("{:,.0f}".format))


@pytest.mark.parametrize("value", ["regret", "name"])
@pytest.mark.parametrize("panels", [1, 3, 6])
def test_maps_have_room(value, panels):
    frame = pd.concat([cells().assign(part=f"panel number {i}") for i in range(panels)])
    marks = {"text": "text", "hatched": "bad", "hatch": "no valid tuning"}
    drawn = plot.heatmap(frame, "num_experts", "epsilon", value, panel="part", **marks)
    assert plot.overlaps(drawn.figure) == [] and len(drawn.figure.axes) == panels and len(drawn.data) == len(frame)
    assert drawn.figure.legends[0].get_texts()[-1].get_text() == "no valid tuning"


def test_a_maps_cells_tile_it_and_have_their_colours():
    frame = cells(3, 2)
    axes = plot.heatmap(frame, "num_experts", "epsilon", "name", hatched="bad").figure.axes[0]
    faces = [p for p in axes.patches if p.get_width() and not p.get_hatch()]
    assert len(faces) == 6 and sum(bool(p.get_hatch()) and p.get_width() > 0 for p in axes.patches) == 3
    low, high = np.log(axes.get_xlim())
    areas = [np.log((p.get_x() + p.get_width()) / p.get_x()) for p in faces]
    np.testing.assert_allclose(sum(areas) / 2, high - low)  # two rows cover the width exactly
    named = list(zip(faces, frame["name"], strict=True))
    colours = {name: {p.get_facecolor() for p, n in named if n == name} for _, name in named}
    assert all(len(found) == 1 for found in colours.values()) and len(set.union(*colours.values())) == 2
    empty = plot.heatmap(frame.assign(name=[None, *frame["name"][1:]]), "num_experts", "epsilon", "name").figure.axes[0]
    assert empty.patches[0].get_facecolor()[:3] == (1, 1, 1)


def test_a_map_of_one_number_and_linear_axes():
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": [1, 1, 2, 2], "v": [3.0, 3.0, np.nan, 3.0]})
    drawn = plot.heatmap(frame, "a", "b", "v")
    assert drawn.figure.axes[0].get_xscale() == "linear" and plot.overlaps(drawn.figure) == []


def test_a_map_over_names_has_equal_cells_in_order_of_appearance():
    frame = pd.DataFrame({"attack": ["target", "zero"] * 2, "share": [0.1, 0.1, 0.4, 0.4], "v": [1.0, 2.0, 3.0, 4.0]})
    drawn = plot.heatmap(frame, "share", "attack", "v", text="v")
    axes = drawn.figure.axes[0]
    assert [axes.yaxis.get_major_formatter()(i, None) for i in axes.get_yticks()] == ["target", "zero"]
    assert axes.get_ylim() == (-0.5, 1.5) and axes.get_yscale() == "linear" and axes.get_xscale() == "log"
    assert drawn.data["attack"].tolist() == frame["attack"].tolist() and plot.overlaps(drawn.figure) == []


def test_cuts_tell_values_apart_that_are_close_together():
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": [1, 1, 2, 2], "v": [1.0, 1.15, 1.3, 300.0]})

    def colours(**cuts):
        drawn = plot.heatmap(frame, "a", "b", "v", **cuts)
        return len({p.get_facecolor() for p in drawn.figure.axes[0].patches if p.get_width()}), drawn

    assert colours()[0] == 2  # six colours share the range from 1 to 300
    number, drawn = colours(cuts=(1.0, 1.1, 1.2, 2.0, 1000.0))
    assert number == 4
    assert [text.get_text() for text in drawn.figure.legends[0].get_texts()] == [
        "1 to 1.1", "1.1 to 1.2", "1.2 to 2", "2 to 1,000",
    ]  # fmt: skip


def test_keys_have_the_names_that_are_given():
    ds = result(SHORT, {"corruption_bound": [0.0, 0.2]})
    names = {"corruption_bound": "share of attacked agents"}
    assert plot.against(ds, "corruption_bound").figure.axes[0].get_xlabel() == "corruption bound"
    assert plot.against(ds, "corruption_bound", names=names).figure.axes[0].get_xlabel() == names["corruption_bound"]
    titles = [axes.get_title().replace("\n", " ") for axes in plot.regret(ds, names=names).figure.axes]
    assert titles == ["share of attacked agents = 0", "share of attacked agents = 0.2"]


def test_lines_of_a_table():
    frame = pd.DataFrame({"t": [1, 2, 1, 2], "p": [0.5, 0.6, 0.5, 0.4], "data": ["l", "l", "m", "m"]})
    frame["markers"] = [True, True, False, False]
    drawn = plot.lines(frame, "t", "p", line="data", dotted={"m": "l"})
    first, second = drawn.figure.axes[0].get_lines()
    assert first.get_linestyle() == "None" and second.get_linestyle() == ":" and first.get_color() == second.get_color()
    assert second.get_ydata().tolist() == [0.5, 0.4] and plot.overlaps(drawn.figure) == []
    with pytest.raises(ValueError, match="'q' must be one of"):
        plot.lines(frame, "t", "q", line="data")


def test_a_line_that_is_missing_everywhere_or_in_the_first_panel():
    ds = result(["EXP3", "UCB1", "HTINF"], {"epsilon": [0.1, 1.0]})
    shown = lambda ds: [text.get_text() for text in plot.regret(ds).figure.legends[0].get_texts()]
    assert shown(ds.where(ds.algorithm != "UCB1")) == ["EXP3", "HTINF"]
    assert shown(ds.where((ds.algorithm != "UCB1") | (ds.epsilon > 0.5))) == ["EXP3", "UCB1", "HTINF"]


@pytest.mark.parametrize("values", [[2, 10], [0.5, 2.5], [False, True], [1, "1"], ["_a", "_child0"]])
def test_lines_and_cells_of_any_value_are_in_the_legend(values):
    frame = pd.DataFrame({"t": [1, 2] * 2, "p": [0.5, 0.6, 0.7, 0.4]})
    frame["which"] = pd.Series(np.repeat(np.array(values, object), 2)).infer_objects()
    drawn = plot.lines(frame, "t", "p", line="which").figure
    names = ["1", "'1'"] if values[0] == 1 else list(map(str, values))
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == names
    assert [line.get_ydata().tolist() for line in drawn.axes[0].lines] == [[0.5, 0.6], [0.7, 0.4]]
    colours = [line.get_color() for line in drawn.axes[0].lines]
    assert [line.get_color() for line in drawn.legends[0].get_lines()] == colours
    named = frame.assign(b=[1, 1, 2, 2], which=frame["which"].astype("category" if values[0] == 2 else object))
    cells = plot.heatmap(named, "t", "b", "which").figure
    assert [text.get_text() for text in cells.legends[0].get_texts()] == names
    first, second = (patch.get_facecolor() for patch in cells.legends[0].get_patches())
    assert [patch.get_facecolor() for patch in cells.axes[0].patches[:4]] == [first] * 2 + [second] * 2
    with pytest.raises(ValueError, match="column 'which' has an empty cell"):
        plot.lines(frame.assign(which=[1, 1, np.nan, np.nan]), "t", "p", line="which")


def test_labels_that_begin_with_an_underscore_are_drawn():
    for labels in (["_mine", "moss"], ["moss", "_child1"]):
        ds = result(labels, {"epsilon": [0.1, 1.0]})
        for drawn in (plot.regret(ds), plot.against(ds, "epsilon")):
            assert [text.get_text() for text in drawn.figure.legends[0].get_texts()] == labels
        colours = [line.get_color() for line in plot.regret(ds).figure.legends[0].get_lines()]
        assert colours == list(layout.COLOURS[:2])


def test_regret_below_zero_is_drawn_with_zero():
    for scale in (1e-3, 1e6):
        ds = -scale * result(["a", "b"], {"k": [1.0, 2.0]}, exponents=[0.1, 0.11])
        for drawn in (plot.regret(ds), plot.against(ds, "k"), plot.regret(ds, select={"k": 1.0}, bands="quantile")):
            low, high = drawn.figure.axes[0].get_ylim()
            assert low <= drawn.data.centre.min() < 0 <= high and plot.overlaps(drawn.figure) == []
    # one horizon is below zero, and the other one's lines are far apart
    mixed = result(["a", "b"], {"horizon": [100, 20_000]}, exponents=[0.1, 0.8])
    mixed["regret"] = mixed.regret * xr.DataArray([-1.0, 1.0], dims="horizon")
    assert plot.regret(mixed).figure.axes[0].get_ylim()[0] < 0


def test_plays_have_their_order_whatever_they_come_in():
    ds, few = result(["a", "b"], {"k": [1.0, 2.0]}, seeds=70), [44, 52, 48]
    down, mixed = ds.sortby("t", ascending=False), ds.isel(t=few)
    for table in (
        jb.summary, jb.table, jb.slope, lambda x: jb.compare(x, "a", "b", interval="anytime"),
        lambda x: plot.regret(x).data, lambda x: plot.against(x, "k").data,
    ):  # fmt: skip
        assert str(table(down)) == str(table(ds)) and str(table(mixed)) == str(table(ds.isel(t=sorted(few))))
    selected = plot.against(ds, "k", select={"t": [int(TIMES[50]), int(TIMES[5])]}).data
    assert selected.centre.tolist() == plot.against(ds.isel(t=[5, 50]), "k").data.centre.tolist()


def test_a_maps_categories_keep_their_colours():
    """Two figures of one set of names: a name has one colour, and the legend names what is there."""
    looks = []
    for winners in (["u", "v"], ["v", "v"]):
        frame = pd.DataFrame({"a": [1, 2], "b": [1, 1], "winner": pd.Categorical(winners, ["u", "v"])})
        figure = plot.heatmap(frame, "a", "b", "winner").figure
        handles = figure.axes[0].get_legend_handles_labels()
        looks.append(dict(zip(handles[1], (h.get_facecolor() for h in handles[0]), strict=True)))
    assert set(looks[0]) == {"u", "v"} and set(looks[1]) == {"v"} and looks[0]["v"] == looks[1]["v"]


def test_bounds_are_drawn_in_every_panel_and_told_apart_in_the_table():
    arms = partial(jb.environments.bernoulli_arms, means=[0.75, 0.5])
    ds = jb.sweep(jb.algorithms.dp_klucb, arms, horizon=200, seeds=4, grid={"epsilon": [0.5, 2.0]},
                  checkpoints=5, progress=False)  # fmt: skip
    lower = jb.theory.private_kl_lower_bound([0.75, 0.5], 0.5)
    plays = ds["t"].values
    drawn = plot.regret(ds, bounds={"lower bound": lambda t: lower * np.log(t), "T": plays, "one": 3.0})
    assert len(drawn.figure.axes) == 2
    for axes in drawn.figure.axes:
        lines = {line.get_label(): line for line in axes.lines}
        np.testing.assert_allclose(lines["lower bound"].get_ydata(), lower * np.log(plays))
        np.testing.assert_allclose(lines["one"].get_ydata(), 3.0)
    assert (drawn.data["kind"] == "bound").sum() == 3 * len(plays)
    assert "kind" not in plot.regret(ds).data
    with pytest.raises(ValueError, match="checkpoints"):
        plot.regret(ds, bounds={"short": [1.0, 2.0]})
    logarithmic = plot.regret(ds, log="y", bounds={"from zero": lambda t: t - t[0]})
    assert np.isnan({line.get_label(): line for line in logarithmic.figure.axes[0].lines}["from zero"].get_ydata()[0])


def test_a_band_reaches_from_low_to_high():
    for bands in ("interval", "quantile"):
        drawn = plot.regret(result(["EXP3"]), bands=bands)
        band, last = drawn.figure.axes[0].collections[0].get_paths()[0].vertices, drawn.data.iloc[-1]
        ends = band[band[:, 0] == TIMES[-1], 1]
        assert (ends.min(), ends.max()) == (last["low"], last["high"]) and last["low"] < last["centre"] < last["high"]
    wanted = np.quantile(result(["EXP3"])["regret"].values[0, :, -1], [0.05, 0.5, 0.95])
    np.testing.assert_allclose(last[["low", "centre", "high"]].astype(float), wanted)
