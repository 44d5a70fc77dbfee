"""What objects look like in a terminal and in a notebook."""

import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits import catalogue, statistics
from jaxbandits.reports import layout, plot
from jaxbandits.sweeps import estimate

DS = xr.Dataset(
    {"regret": (("algorithm", "epsilon", "seed", "t"), np.arange(48.0).reshape(2, 2, 4, 3), {"units": "reward"})},
    {"algorithm": ["a", "b"], "epsilon": [0.5, 1.0], "t": [1, 2, 3]},
)


def test_an_algorithm_says_its_call_its_claim_and_what_it_spends():
    text = repr(jb.algorithms.dp_klucb(num_arms=4, horizon=100, epsilon=0.5))
    head, *facts = text.splitlines()
    assert head.startswith("dp_klucb(num_arms=4, horizon=100, epsilon=0.5")
    facts = dict(line.split(maxsplit=1) for line in facts)
    assert list(facts) == ["params", "privacy", "spends", "rewards"]
    assert facts["privacy"] == "central model, neighbours differ in one reward"
    assert facts["spends"] == "epsilon = 0.5, delta = 0" and facts["rewards"].startswith("in [0, 1], others are")
    wrapped = jb.algorithms.private_batched(num_arms=4, horizon=100, epsilon=0.5)
    assert "base=htinf" in repr(wrapped) and "base.tail_scale=" in repr(wrapped)
    assert "<code>dp_klucb(" in jb.algorithms.dp_klucb(num_arms=4, horizon=100, epsilon=0.5)._repr_html_()
    for name in catalogue.ALGORITHMS:
        shown = repr(catalogue.case(name)[0])
        assert shown.startswith(f"{name}(") and " at 0x" not in shown and "Traced" not in shown, shown


def test_a_repr_changes_no_tree_and_never_fails():
    algorithm = jb.algorithms.dp_klucb(num_arms=4, horizon=100, epsilon=0.5)
    tree = jax.tree.structure(algorithm.params)
    seen = []

    def inside(params):
        seen.append(repr(algorithm._replace(params=params)))
        return params

    jax.eval_shape(inside, algorithm.params)
    assert "traced" in seen[0] and jax.tree.structure(algorithm.params) == tree
    value = type(_run())(jnp.ones(3), jnp.arange(3), jnp.arange(2), (), {"nonfinite": jnp.zeros(())})
    assert len(jax.tree.leaves(value)) == 4 and "Run" in repr(value)
    jax.eval_shape(lambda x: (seen.append(repr(x)), x.regret)[1], value)
    assert "array of shape (3,)" in seen[-1]


def _run():
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    return jb.simulate(jb.algorithms.uniform(num_arms=2, horizon=50), arms)


def test_a_run_says_regret_pulls_and_history():
    run = _run()
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in repr(run).splitlines()[1:]}
    assert rows["plays"] == "50" and rows["regret"].startswith(f"{float(run.regret[-1]):,.6g} at the horizon")
    assert rows["pulls"] == ", ".join(map(str, run.pulls.tolist())) and rows["history"].startswith("not kept")
    assert "<th>pulls</th>" in run._repr_html_()


def test_a_table_is_text_that_a_notebook_renders():
    table = statistics.table(DS)
    assert repr(table) == str(table) == table and "\n" in repr(table)
    assert table._repr_markdown_() == table and table.startswith("| algorithm |")
    latex = statistics.table(DS, "latex")
    assert latex._repr_markdown_() == f"```latex\n{latex}\n```"


def test_minus_signs_symbols_and_units():
    drawn = plot.regret(DS)
    assert drawn.figure.axes[0].get_title() == r"privacy level $\varepsilon$ = 0.5"
    assert drawn.figure.axes[0].get_xlabel() == "plays $t$"
    assert " ".join(drawn.figure.axes[0].get_ylabel().split()) == "cumulative regret (in rewards)"
    assert {"plays t", "cumulative regret", "privacy level ε = 1"} <= set(layout.figure_words(drawn.figure))
    frame = pd.DataFrame({"x": [-2.0, 0.0, 2.0], "y": [-1.0, 0.0, 1.0], "line": ["l"] * 3})
    lines = plot.lines(frame, "x", "y", line="line").figure
    lines.draw_without_rendering()
    ticks = [label.get_text() for axis in (lines.axes[0].xaxis, lines.axes[0].yaxis) for label in axis.get_ticklabels()]
    assert "−2" in ticks and not any("-" in text for text in ticks)


def test_a_caption_can_be_left_out():
    with_text, without = (plot.against(DS, "epsilon", caption=caption) for caption in ("", False))
    assert [text.get_text() for text in without.figure.texts if text.get_text()] == []
    assert any("4 seeds" in text.get_text() for text in with_text.figure.texts)
    assert without.figure.get_figheight() < with_text.figure.get_figheight() and plot.overlaps(without.figure) == []


def test_plots_are_drawn_into_given_axes():
    figure = Figure(figsize=(9, 3))
    axes = figure.subplots(1, 3)
    drawn = plot.regret(DS, ax=axes[:2])
    plot.against(DS, "epsilon", ax=axes[2])
    assert drawn.figure is figure and figure.axes == list(axes) and tuple(figure.get_size_inches()) == (9, 3)
    assert [len(one.get_lines()) >= 2 for one in axes] == [True] * 3 and axes[0].get_legend() is not None
    own = plot.regret(DS)
    pd_columns = ["algorithm", "epsilon", "t", "centre"]
    assert drawn.data[pd_columns].equals(own.data[pd_columns])
    with pytest.raises(ValueError, match="2 panels and 1 given"):
        plot.regret(DS, ax=axes[0])
    with pytest.raises(ValueError, match="width"):
        plot.against(DS, "epsilon", ax=axes[2], width=3)


def test_figures_of_a_notebook_have_texts_of_one_size():
    for drawn in (plot.regret(DS), plot.against(DS, "epsilon")):
        data, size = drawn._repr_png_()
        assert data.startswith(b"\x89PNG")
        assert size["width"] / drawn.figure.get_figwidth() == pytest.approx(layout.DISPLAY_PIXELS, rel=0.01)


@pytest.fixture
def notebook(monkeypatch):
    """A kernel that notes what is displayed: one output, each entry what stands in it then."""
    outputs: list[list[dict]] = []

    class Handle:
        def __init__(self, first):
            self.shown = [first]
            outputs.append(self.shown)

        def update(self, output, raw):
            self.shown.append(output)

    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display.display = lambda output, raw, display_id: Handle(output)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return outputs


def test_a_notebook_shows_estimate_and_bar_in_one_output(notebook, capsys):
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    jb.sweep(["uniform"], arms, horizon=50, seeds=16)
    (shown,) = notebook
    assert all("16 runs to compute" in output["text/plain"] for output in shown)
    assert "<progress" in shown[0]["text/html"]
    assert "done: 800 plays in" in shown[-1]["text/plain"] and "<progress" not in shown[-1]["text/html"]
    said = capsys.readouterr()
    assert said.err == "" and said.out == ""
    bar = estimate.progress_bar(["a <line>"], total=10, desc="5 lanes")
    bar.update(4)
    bar.close()
    assert notebook[1][-1]["text/plain"].splitlines()[0] == "a <line>"
    assert "&lt;line&gt;" in notebook[1][-1]["text/html"]
    assert "stopped at 40% after" in notebook[1][-1]["text/plain"]
    jb.sweep(["uniform"], arms, horizon=50, seeds=16, progress=False)
    assert len(notebook) == 2


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_has_lines_and_a_bar_on_stderr_and_a_log_the_last_bar(capsys, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    arms = jb.environments.bernoulli_arms(means=[0.2, 0.8])
    jb.sweep(["uniform"], arms, horizon=50, seeds=16)
    said = capsys.readouterr()
    assert "16 runs to compute" in said.err and said.out == ""
    assert said.err.endswith("\r" if terminal else "\n")
    assert terminal or "100%" in said.err.splitlines()[-1]
