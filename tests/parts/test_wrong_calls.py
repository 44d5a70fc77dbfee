"""Wrong calls and configurations (`wrong_calls.toml`): each ends in one line. Near them, what should work."""

import functools
import inspect
import json
import sys
import textwrap
import warnings
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tqdm
import xarray as xr
from annotated_types import Ge
from jax_config import use_config
from wrong_calls import ARMS, DS, LONGEST, RUN, Row, fault, fault_of, result, rows, sweep

import jaxbandits as jb
from jaxbandits import catalogue, validation
from jaxbandits.cli import main
from jaxbandits.formatting import csv, show
from jaxbandits.recipe import recipe_of
from jaxbandits.sweeps import execution
from jaxbandits.sweeps.arguments import checkpoint_times
from jaxbandits.sweeps.engines import one_call
from jaxbandits.sweeps.engines.calls import Call
from jaxbandits.sweeps.engines.local import Local
from jaxbandits.sweeps.plan import FILLED, plan
from jaxbandits.sweeps.toml_file import read_config
from jaxbandits.validation import declare, factory

A, E, V = jb.algorithms, jb.environments, jb.adversaries


@pytest.mark.compiles(50)  # 900 calls: a few are wrong only once something was played
def test_wrong_calls_end_in_one_line():
    faults = [(row, fault(row)) for row in rows()]
    said = [f"{row.name}: {row.call}\n    {found}" for row, found in faults if found]
    assert not said, f"{len(said)} of {len(faults)} rows\n" + "\n".join(said)
    assert len(faults) > 900


def test_a_row_that_is_not_as_it_says_is_found():
    def of(error):
        def call():
            raise error

        return call

    assert fault(Row("", "sweep('ucb')", ValueError, ["'ucb'", "ucb1"])) is None
    for found, words in (
        (fault(Row("", "sweep('ucb')", ValueError, ["ucb1", "'ucb'"])), "no \"'ucb'\", or not in this order"),
        (fault(Row("", "sweep('ucb1')", ValueError, [""])), "no error: it returns <xarray.Dataset"),
        (fault(Row("", "sweep(None)", ValueError, [""])), "a TypeError in place of a ValueError"),
        (fault_of(of(UserWarning("first")), ValueError, [""]), "a UserWarning in place"),
        (fault_of(of(ValueError("first\nthen")), ValueError, [""]), "more than one line"),
        (fault_of(of(ValueError("x" * (LONGEST + 1))), ValueError, [""]), "more than one line"),
    ):
        assert words in found, found


WRONG = (None, "x", np.nan, -1, -1.5, 0, 0.5, np.inf, -np.inf, 1e300, 1e-300, 1e39, [], {}, (), object(), True, [None],
    ["x"],
         np.array([1.0, 2.0]), np.float32(1e30), b"x", 1j, [[1.0], [1.0, 2.0]], set())  # fmt: skip
NUMBERS = (10**400, -(10**400))  # only where a number is meant: elsewhere its text alone would fill the message


def factories():
    tables = {"algorithms": catalogue.ALGORITHMS, "environments": catalogue.ENVIRONMENTS}
    for kind, table in (tables | {"adversaries": catalogue.ADVERSARIES}).items():
        for name, example in table.items():
            yield pytest.param(getattr(getattr(jb, kind), name), example, id=name)


def arguments(factory, example) -> dict:
    """The catalogue's own arguments of a factory."""
    environment = example.environment
    if factory.__name__ in catalogue.ENVIRONMENTS:
        if not isinstance(environment, functools.partial):
            return {key: value for key, value in environment().config.items() if key != "name"}
        return dict(recipe_of(environment).bound)
    if factory.__name__ in catalogue.ADVERSARIES:
        return dict(recipe_of(example.reward_adversary or example.message_adversary).bound)
    names, given = recipe_of(factory).arguments, dict(recipe_of(example.algorithm).bound)
    fixed = {"horizon": example.horizon} | {k: v for k, v in environment().facts.items() if k in FILLED}
    return {key: value for key, value in fixed.items() if key in names} | given


@pytest.mark.parametrize("factory, example", list(factories()))
def test_every_argument_of_every_factory(factory, example):
    """A valid part or an error of one line: nothing from inside, whatever an argument is."""
    given = arguments(factory, example)
    factory(**given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, parameter in inspect.signature(factory).parameters.items():
            meant = given.get(key, parameter.default)
            numeric = isinstance(meant, int | float) and not isinstance(meant, bool)
            for value in (*WRONG, *(NUMBERS if numeric else ())):
                try:
                    factory(**given | {key: value})
                except (ValueError, TypeError) as error:
                    said = str(error)
                    assert "\n" not in said and len(said) <= LONGEST, (key, value, said)
                    assert "ambiguous" not in said and "inhomogeneous" not in said, (key, value, said)
                    if not callable(value) and not isinstance(value, float | int | np.floating):
                        assert key in said or key == "bases", (key, value, said)


def test_a_directory_is_no_file(tmp_path, capsys):
    assert main(["run", str(tmp_path), "--out", str(tmp_path / "out"), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and tmp_path.name in said and "directory" in said


def test_a_module_beside_the_file_hides_nothing(tmp_path):
    """A `json.py` beside the file is not what `json` means inside the user's module."""
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "mine_beside.py").write_text(
        "import colorsys\nfrom jaxbandits.algorithms import ucb1\n\nassert colorsys.rgb_to_hsv\n\n"
        "def mine(*, num_arms, horizon):\n    return ucb1(num_arms=num_arms, horizon=horizon)\n"
    )
    path = tmp_path / "run.toml"
    path.write_text(RUN.replace('name = "ucb1"', 'name = "mine_beside:mine"'))
    assert list(read_config(path)["algorithms"]) == ["mine_beside:mine", "ldp_ucb"]


def test_a_program_may_make_errors_of_numpys_warnings():
    """Parts, checked functions and pictures compute as they do without that; the program keeps its own way."""

    def squash(*, num_arms, horizon):
        return A.ucb1(num_arms=num_arms, horizon=horizon, bonus_scale=1.0 + np.exp(np.float64(-1e3)))

    def double(x: Annotated[float, Ge(0.0)]):
        return np.float64(x) * 2

    tiny = xr.Dataset({"regret": (("algorithm", "seed", "t"), [[[1e-200], [3e-200]]])}, {"algorithm": ["a"], "t": [9]})
    with np.errstate(all="raise"):
        assert factory(squash)(num_arms=2, horizon=9).config["name"] == "squash"
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert declare(double)(1e308) == np.inf
        jb.plot.regret(tiny)
        assert set(np.geterr().values()) == {"raise"}


def test_a_module_beside_the_file_is_the_one_that_is_meant(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mine_elsewhere", ModuleType("mine_elsewhere"))
    sys.modules["mine_elsewhere"].mine, sys.modules["mine_elsewhere"].__file__ = A.ucb1, str(tmp_path.parent / "x.py")
    path = tmp_path / "run.toml"
    path.write_text(RUN.replace('name = "ucb1"', 'name = "mine_elsewhere:mine"'))
    assert list(read_config(path)["algorithms"]) == ["mine_elsewhere:mine", "ldp_ucb"]  # an installed one
    (tmp_path / "mine_elsewhere.py").write_text("mine = 3\n")
    assert list(read_config(path)["algorithms"]) == ["mine_elsewhere:mine", "ldp_ucb"]  # its file has moved here
    (tmp_path.parent / "x.py").touch()
    with pytest.raises(ValueError, match=r"'mine_elsewhere' is .*x\.py here: rename the module of your own"):
        read_config(path)


def test_a_file_with_a_byte_order_mark_and_names_alone(tmp_path):
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + RUN.encode())
    assert list(read_config(path)["algorithms"]) == ["ucb1", "ldp_ucb"]
    names = 'algorithm = ["ucb1", "moss"]\nenvironment = {name = "bernoulli_arms"}\n'
    path.write_text(f"horizon = 9\nseeds = [3, 7]\n{names}")
    settings = read_config(path)
    assert list(settings["algorithms"]) == ["ucb1", "moss"] and settings["seeds"] == range(3, 7)
    path.write_text(path.read_text().replace("[3, 7]", "[3, 4, 5]"))
    assert read_config(path)["seeds"] == range(3, 6)


def laid_out(algorithms="ucb1", environment=ARMS, **changes):
    return plan(algorithms, environment, **{"horizon": 32, "seeds": 8, "checkpoints": 4} | changes)


@pytest.mark.compiles(30)  # the calls that are right play something
def test_names_are_looked_up():
    grid = {"environment.means": {"easy": [0.1, 0.9], "hard": [0.4, 0.5]}}
    by_name = sweep(["ucb1", A.moss], "bernoulli_arms", grid=grid, reward_adversary="huber")
    by_factory = sweep([A.ucb1, A.moss], E.bernoulli_arms, grid=grid, reward_adversary=V.huber)
    assert by_name.algorithm.values.tolist() == ["ucb1", "moss"]
    assert by_name.attrs["config"] == by_factory.attrs["config"]
    np.testing.assert_array_equal(by_name.regret, by_factory.regret)
    assert laid_out({"a": "ucb1", "b": partial(A.exp3, mixing=0.1)}).labels == ["a", "b"]
    run = jb.simulate(partial(A.ucb1, horizon=32), ARMS, reward_adversary="huber", checkpoints=4, seed=np.uint32(3))
    np.testing.assert_array_equal(run.regret, sweep(reward_adversary="huber").regret[0, 3])


def test_consecutive_seeds_are_a_range_and_dtypes_have_many_names():
    seeds = np.arange(3, 6)
    for same in (
        [3, 4, 5],
        (3, 4, 5),
        seeds,
        seeds.astype(np.uint8),
        [3.0, 4.0, 5.0],
        xr.DataArray(seeds),
        range(3, 6),
    ):
        assert laid_out(seeds=same).seeds == range(3, 6)
    for dtype in (np.float32, jnp.float32, np.dtype("float32"), "f4", "float32"):
        assert laid_out(dtype=dtype).dtype == "float32"
    assert checkpoint_times(32, 32).tolist() == list(range(1, 33))  # every play is a number of checkpoints


CHOSEN = {
    "an algorithm": lambda ds: ds.sel(algorithm="one"),
    "a seed": lambda ds: ds.isel(seed=0),
    "an epsilon": lambda ds: ds.sel(epsilon=0.1),
    "the end": lambda ds: ds.isel(t=-1),
    "one lane": lambda ds: ds.isel(algorithm=0, seed=1, epsilon=0),
    "a number": lambda ds: ds.isel(algorithm=0, seed=1, epsilon=0, t=-1),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_what_xarray_selects_can_be_summarised(chosen):
    ds = CHOSEN[chosen](DS)
    labels = np.atleast_1d(ds.algorithm.values)
    chosen_values = {key: np.atleast_1d(ds[key]) for key in ("epsilon", "seed", "t")}
    kept = DS.sel(algorithm=labels, **chosen_values)
    for call in (
        jb.summary, jb.table, lambda ds: jb.table(ds, format="latex"), lambda ds: jb.compare(ds, labels[0], labels[-1]),
        *([jb.slope] if ds.t.size > 1 else []), lambda ds: jb.plot.against(ds, "epsilon").data,
        lambda ds: jb.plot.regret(ds, select={"epsilon": 0.1}).data,
    ):  # fmt: skip
        here, there = call(ds), call(kept)
        assert here.equals(there) if hasattr(here, "equals") else here == there
    if ds.seed.ndim == 0:
        assert jb.summary(ds).ci_low.isna().all() and "one seed" in jb.table(ds)


def test_one_point_of_points_can_be_summarised():
    dims = ("algorithm", "point", "seed", "t")
    coords = {"algorithm": ["a"], "seed": [0, 1], "t": [1, 2], "point": [0, 1], "epsilon": ("point", [0.1, 1.0])}
    ds = xr.Dataset({"regret": (dims, np.arange(8.0).reshape(1, 2, 2, 2))}, coords)
    assert jb.summary(ds.isel(point=1))[["point", "epsilon", "mean"]].values.tolist() == [[1, 1.0, 6.0]]


def refused(call, *texts):
    found = fault_of(call, ValueError, texts)
    assert found is None, found


def test_a_result_that_cannot_be_held_is_refused_before_it_runs(tmp_path, monkeypatch):
    for store, remedy in ((None, "store=DIR"), (tmp_path / "deep" / "er", "another disk")):
        refused(
            lambda store=store: sweep(seeds=2**31, store=store, horizon=10**6, checkpoints=10**5),
            "TB", remedy, "fewer checkpoints", "fewer seeds",
        )  # fmt: skip
        assert not (tmp_path / "deep").exists()
    assert 2**20 < execution.free_memory() < 2**50  # bytes
    monkeypatch.setattr(execution, "free_memory", lambda: 300)
    refused(lambda: sweep(), "seeds = 8", "320 B", "300 B")  # 8 lanes of 4 checkpoints and 2 arms
    monkeypatch.setattr(execution, "free_memory", lambda: 400)
    assert sweep().sizes["seed"] == 8


@pytest.mark.parametrize("flag, value", [
    ("jax_disable_jit", True), ("jax_transfer_guard", "disallow"),
    ("jax_transfer_guard_host_to_device", "disallow_explicit"), ("jax_no_tracing", True),
    ("jax_error_checking_behavior_nan", "raise"), ("jax_error_checking_behavior_oob", "raise"),
])  # fmt: skip
def test_a_flag_that_breaks_a_sweep_is_named(flag, value):
    with use_config({flag: value}):
        refused(lambda: sweep(), flag.removesuffix("_host_to_device"), "jax.config.update")
        refused(lambda: jb.simulate(partial(A.ucb1, horizon=9), ARMS), "jax.config.update")


ODD = ["=1+1", "+a", "-b", "@c", "two\nlines", "<script>alert(1)</script>", "a|b", 'quo"te', " =x"]


def test_odd_labels_stay_text():
    ds = result(ODD)
    lines = jb.table(ds).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 1 + len(ODD)
    assert "<script" not in jb.table(ds) and "&lt;script" in jb.table(ds) and r"a\|b" in jb.table(ds)
    assert not any(line.startswith(("| =", "| +", "| -", "| @")) for line in lines)
    assert all(line.endswith(r"\\") for line in jb.table(ds, format="latex").splitlines()[2:-1] if "hline" not in line)
    assert set(jb.summary(ds).algorithm) == set(ODD)  # the table in memory keeps them as they are
    text = csv(jb.summary(ds).assign(**{"=key": -1.5}))
    assert len(text.splitlines()) == 1 + 2 * len(ODD) and "-1.5" in text and "'-1.5" not in text
    assert not any(line.lstrip('"').startswith(("=", "+", "-", "@", " =")) for line in text.splitlines())
    assert text.splitlines()[0].endswith("'=key")
    assert laid_out({label: A.ucb1 for label in ODD}).labels == ODD


def test_a_result_of_a_later_release_is_refused(tmp_path):
    DS.assign_attrs(schema_version=99).to_netcdf(tmp_path / "later.nc", engine="h5netcdf")
    refused(lambda: jb.load(tmp_path / "later.nc"), "schema_version = 99", "upgrade jaxbandits")
    DS.assign_attrs(schema_version="new").to_netcdf(tmp_path / "odd.nc", engine="h5netcdf")
    assert jb.load(tmp_path / "odd.nc").identical(DS.assign_attrs(schema_version="new"))


def test_a_run_says_what_it_found_and_what_it_took(tmp_path, capsys):
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(RUN.replace('[[algorithm]]\nname = "ldp_ucb"\n[grid]\nepsilon = [0.5, 1.0]\n', ""))
    command = ["run", str(path), "--out", str(out)]
    assert main(command) == 0
    assert "0 runs from the store, 8 computed in" in capsys.readouterr().out
    spent = json.loads((out / "provenance.json").read_text())["seconds"]
    assert spent > 0
    (out / "provenance.json").unlink()  # written anew: what it says was spent is what was spent
    assert main(command) == 0
    said = capsys.readouterr()
    assert "8 runs from the store, 0 computed" in said.out and "8 runs from the store, 0 computed" in said.err
    assert json.loads((out / "provenance.json").read_text())["seconds"] == spent
    assert main([*command, "--seeds", "16"]) == 0
    said = capsys.readouterr()
    assert "8 runs from the store, 8 computed" in said.out and "8 runs from the store" in said.err
    assert json.loads((out / "provenance.json").read_text())["seconds"] > spent
    path.write_text(path.read_text().replace("means = [0.2, 0.8]", f"means = {[0.2] * 30 + [0.8]}"))
    assert main(command) == 2
    assert "environment.means is of length 2 there, of length 31 here" in capsys.readouterr().err
    path.write_text(path.read_text().replace(f"{[0.2] * 30 + [0.8]}", "[0.2, 0.7]"))
    assert main(command) == 2
    assert "environment.means[1] is 0.8 there, 0.7 here" in capsys.readouterr().err
    changes = [validation.difference("a", {"shape": [9], "crc32": 1}, {"shape": n, "crc32": 2}) for n in ([9], [8])]
    assert changes[0] == "a has other contents here than there: the file or the array has changed"
    assert changes[1] == "a.shape[0] is 9 there, 8 here"
    assert main([*command, "--fresh"]) == 0
    assert "0 runs from the store, 8 computed" in capsys.readouterr().out
    kept = json.loads((out / "provenance.json").read_text())["seconds"]
    assert main([*command, "--quiet"]) == 0 and kept < 60


def test_the_bar_does_not_count_restored_plays(tmp_path, monkeypatch):
    """A call taken up at play 20 of 32 begins there: its rate is that of the twelve plays left."""
    planned = laid_out()
    task, device = Call(0, (0,), 0, 8, 8), jax.local_devices()[0]
    saved, seen = [], []

    def keep(span, window, leaves, last=False):
        saved.append((span, window, leaves()))

    monkeypatch.setattr(one_call, "FIRST_SEGMENT", 20)
    whole = one_call.play_call(task, planned, device, keep=keep)
    span, window, leaves = saved[0]

    at, report = SimpleNamespace(span=span, window=window), lambda played: seen.append((played.plays, played.restored))
    again = one_call.play_call(task, planned, device, begun=(at, leaves), report=report)
    np.testing.assert_array_equal(whole.regret, again.regret)
    assert window == 20 and [plays for plays, restored in seen if restored] == [20 * 8]
    assert sum(plays for plays, _ in seen) == 32 * 8


def test_the_rate_of_the_bar_begins_where_the_run_does(monkeypatch):
    bars = []

    class Bar(tqdm.tqdm):
        def close(self):
            bars.append((self.initial, self.n, self.total))
            super().close()

    monkeypatch.setattr(tqdm, "tqdm", Bar)

    def run(plan, remaining, machine, orders):
        call = remaining.take()
        orders.report(one_call.Progress(call, 200, restored=True))
        orders.report(one_call.Progress(call, 56))

    engine = Local(None, None)
    engine.run = run  # it plays nothing
    checked = execution.check_sweep(laid_out(), {}, {}, engine)
    execution.SweepRun(checked)._play(checked, *checked.calls)
    assert bars[0] == (200, 256, 256)


def test_the_help_says_that_a_file_is_a_program(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "a program" in " ".join(capsys.readouterr().out.split())


def test_a_value_is_shown_on_one_line():
    assert show(np.ones((9, 9))).count("\n") == 0 and len(show(list(range(10**4)))) <= 80
    assert show(np.float64(0.5)) == "0.5" and "bits" in show(10**5000)
    assert textwrap.shorten(show("a\nb"), 20) == r"'a\nb'"
