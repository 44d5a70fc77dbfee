"""A path that a user gives: `~` is the home wherever one is given, and a configuration runs again from its run."""

import ast
from pathlib import Path

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.cli import main
from jaxbandits.reports import plot
from jaxbandits.sweeps.compilation import compilation_cache
from jaxbandits.sweeps.toml_file import config_for_directory, read_config

ARMS = jb.environments.bernoulli_arms(means=[0.2, 0.8])
RUN = """
horizon = 20
seeds = 2
environment = {{name = "loss_table", path = "{path}"}}
algorithm = "exp3"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, and an empty directory in which a folder `~` would stand."""
    place = tmp_path / "home"
    for folder in (place, tmp_path / "here"):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("USERPROFILE", str(place))
    monkeypatch.chdir(tmp_path / "here")
    np.savetxt(place / "losses.csv", np.random.default_rng(0).uniform(size=(20, 3)), delimiter=",")
    (place / "rows.csv").write_text("x,y\n" + "".join(f"{i % 7}.5,{i % 3}\n" for i in range(30)))
    (place / "run.toml").write_text(RUN.format(path="~/losses.csv"))
    yield place
    assert [path.name for path in Path().iterdir()] in ([], [".cache"]), "something was written beside the home"


def test_the_home_is_meant_wherever_a_path_is_given(home, monkeypatch):
    settings = dict(horizon=20, progress=False)
    ds = jb.sweep("ucb1", ARMS, seeds=2, store="~/run", **settings)
    jb.tune("ucb1", ARMS, space={"bonus_scale": [0.5, 1.0]}, seeds=2, report_seeds=2, store="~/tuned", **settings)
    huber = jb.adversaries.huber
    jb.worst_case(
        "ucb1", ARMS, huber, slot="reward", space={"value": (-10.0, 10.0)}, trials=1, seeds=2, report_seeds=2,
        horizon=20, store="~/worst", progress=False,
    )  # fmt: skip
    jb.save(ds, "~/saved.nc")
    jb.load("~/saved.nc"), jb.load("~/run")
    jb.report(ds, "~/report.html")
    jb.report({"a": "~/run"}, Path("~/both.html"))
    plot.save(plot.regret(ds, path="~/regret.png"), "~/again.png")
    jb.read_losses("~/losses.csv"), jb.read_labelled("~/rows.csv", label="y")
    assert read_config("~/run.toml")["seeds"] == range(2)
    for words in (
        ["run", "~/run.toml", "--out=~/command", "--quiet"],
        ["plot", "~/command", "--out=~/pictures"],
        ["report", "~/command", "--out=~/command.html"],
        ["audit", "ldp_ucb", "--runs=2000", "--out=~/audit"],
        ["new", "mine", "--out=~/new"],
    ):
        assert main(words) == 0, words
    monkeypatch.setenv("JAXBANDITS_CACHE", "~/cache")
    assert compilation_cache.root() == home / "cache"
    written = {path.name for path in home.iterdir()}
    assert written >= {
        "run", "tuned", "worst", "saved.nc", "report.html", "both.html", "regret.png", "again.png", "command",
        "pictures", "command.html", "audit", "new",
    }  # fmt: skip


def test_no_function_makes_a_path_of_its_argument_by_itself():
    """`Path(x)` and `open(x)` leave `~` as it is: what may be text goes through `path_of` first."""
    package = Path(jb.__file__).parent
    for file in sorted(package.rglob("*.py")):
        if file.parent.name == "checking":  # temporary folders of its own
            continue
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef) or function.name.startswith(("_", "path_of")):
                continue
            arguments = [*function.args.args, *function.args.kwonlyargs]
            texts = {x.arg for x in arguments if x.annotation and "str" in ast.unparse(x.annotation)}
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in ("Path", "pathlib.Path", "open"):
                    given = {ast.unparse(x) for x in call.args}
                    assert not given & texts, f"{file}:{call.lineno}: {ast.unparse(call)}"


MODULE = """
import jaxbandits as jb
def mine(*, num_arms, horizon):
    return jb.algorithms.exp3(num_arms=num_arms, horizon=horizon)
"""


@pytest.mark.parametrize(
    ("path", "algorithm"),
    [("losses.csv", "exp3"), ("../losses.csv", "exp3"), ("losses.csv", "modules_of_this_test:mine")],
)
def test_the_configuration_of_a_run_runs_again(tmp_path, monkeypatch, path, algorithm):
    """From its own folder, from that of the run that follows, and when the whole tree has moved."""
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "tree" / "data"
    data.mkdir(parents=True)
    np.savetxt(data / path, np.random.default_rng(0).uniform(size=(20, 3)), delimiter=",")
    (data / "modules_of_this_test.py").write_text(MODULE)
    (data / "run.toml").write_text(RUN.format(path=path).replace("exp3", algorithm))
    assert main(["run", "tree/data/run.toml", "--out", "tree/out", "--quiet"]) == 0
    first = jb.load("tree/out")
    assert main(["run", "tree/out/config.toml", "--out", "tree/deeper/again", "--quiet"]) == 0
    (tmp_path / "tree").rename(tmp_path / "moved")
    assert main(["run", "moved/deeper/again/config.toml", "--out", "third", "--quiet"]) == 0
    np.testing.assert_array_equal(jb.load("third").regret, first.regret)
    text = (tmp_path / "third" / "config.toml").read_text()
    assert text.count("folder") == 1 and "moved/data" in text


def test_a_configuration_without_files_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = "\ufeffhorizon = 20\nseeds = 2\n".encode() + b'environment = "bernoulli_arms"\nalgorithm = "ucb1"\n'
    content = content.replace(b'"bernoulli_arms"', b'{name = "bernoulli_arms", means = [0.2, 0.8]}')
    Path("run.toml").write_bytes(content)
    assert main(["run", "run.toml", "--out", "out", "--quiet"]) == 0
    assert Path("out/config.toml").read_bytes() == content
    assert main(["run", "run.toml", "--out", "more", "--seeds", "5", "--quiet"]) == 0
    assert main(["run", "more/config.toml", "--out", "again", "--quiet"]) == 0
    assert jb.load("again").sizes["seed"] == jb.load("more").sizes["seed"] == 5


def test_a_module_of_one_of_several_algorithms_is_found_again(tmp_path):
    text = (
        'horizon = 9\nseeds = 2\nenvironment = "x"\n[[algorithm]]\nname = "ucb1"\n[[algorithm]]\nname = "mine:mine"\n'
    )
    found = config_for_directory(tmp_path / "run.toml", text.encode(), tmp_path / "out").decode()
    assert found == f'folder = ".."  # of the data and modules named here\n{text}'
