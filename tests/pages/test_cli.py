"""The command line and TOML files: what a user types, and what a mistake costs (one line, exit code 2)."""

import json
import textwrap
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import cli
from jaxbandits.cli import main
from jaxbandits.sweeps.toml_file import read_config

GOOD = """
horizon = 60
seeds = 16
checkpoints = 10
[environment]
name = "bernoulli_losses"
means = [0.3, 0.5, 0.6]
[[algorithm]]
name = "private_batched"
base = "htinf"
[[algorithm]]
name = "private_batched"
label = "exp3"
base = { name = "exp3", learning_rate = 0.02, mixing = 0.05 }
[grid]
epsilon = [0.1, 0.5]
"""


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_run_writes_everything_then_finds_it_again(tmp_path, capsys):
    file, out = write(tmp_path / "run.toml", GOOD), tmp_path / "out"
    assert main(["run", file, "--out", str(out), "--format", "png,pdf", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "exp3" in said and "private_batched" in said
    names = {p.name for p in out.iterdir()}
    assert {"config.toml", "results.nc", "summary.csv", "provenance.json", "regret.png", "regret.pdf"} <= names
    assert {"against_epsilon.png", "against_epsilon.pdf"} <= names
    ds = jb.load(out)
    assert dict(ds.sizes) == {"algorithm": 2, "epsilon": 2, "seed": 16, "t": 10, "arm": 3} and ds.t.dtype == np.int64
    assert np.all(ds.pulls.sum("arm") == 60)
    kept = json.loads((out / "provenance.json").read_text())
    assert kept["config"]["horizon"] == 60 and kept["lanes"] == 64 and len(kept["sha256"]["regret"]) == 64
    before = [(out / name).read_bytes() for name in ("results.nc", "provenance.json")]
    assert main(["run", file, "--out", str(out), "--quiet"]) == 0
    assert "already holds" in capsys.readouterr().out
    assert [(out / name).read_bytes() for name in ("results.nc", "provenance.json")] == before
    assert main(["run", file, "--out", str(out), "--seeds", "8", "--quiet"]) == 0
    assert jb.load(out).sizes["seed"] == 8 and json.loads((out / "provenance.json").read_text())["lanes"] == 32
    assert main(["run", file, "--out", str(out), "--seeds", "24", "--quiet"]) == 0
    assert jb.load(out).sizes["seed"] == 24
    np.testing.assert_array_equal(jb.load(out).regret[:, :, :16], ds.regret)
    longer = write(tmp_path / "longer.toml", GOOD.replace("horizon = 60", "horizon = 70").replace("0.6]", "0.7]"))
    assert main(["run", longer, "--out", str(out), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "horizon, environment differ" in said and "--fresh" in said and jb.load(out).sizes["seed"] == 24
    assert main(["run", longer, "--out", str(out), "--seeds", "8", "--quiet", "--fresh"]) == 0
    assert jb.load(out).sizes["seed"] == 8 and int(jb.load(out).t[-1]) == 70
    (out / "regret.png").unlink()
    assert main(["plot", str(out)]) == 0 and (out / "regret.png").exists()


def test_the_file_says_what_python_says(tmp_path):
    settings = read_config(write(tmp_path / "run.toml", GOOD))
    a = jb.algorithms
    from_file = jb.sweep(**settings, progress=False)
    from_python = jb.sweep(
        {
            "private_batched": partial(a.private_batched, base=a.htinf),
            "exp3": partial(a.private_batched, base=partial(a.exp3, learning_rate=0.02, mixing=0.05)),
        },
        jb.environments.bernoulli_losses(means=[0.3, 0.5, 0.6]),
        horizon=60, seeds=16, checkpoints=10, grid={"epsilon": [0.1, 0.5]}, progress=False,
    )  # fmt: skip
    np.testing.assert_array_equal(from_file.regret, from_python.regret)


def test_several_bases_in_toml(tmp_path):
    file = """
horizon = 40
seeds = 8
[environment]
name = "contextual_linear"
num_arms = 5
dim = 3
[[algorithm]]
name = "bandit_combiner"
epsilon = 4.0
bases = [
    { name = "doubling", base = { name = "online_ucb", epsilon = 4.0, learner = "ogd" } },
    { name = "online_ucb", epsilon = 4.0, learner = "ogd" },
]
"""
    (combiner,) = read_config(write(tmp_path / "run.toml", file))["algorithms"].values()
    made = combiner(num_arms=5, dim=3, horizon=40)
    assert made.version[2] == (("doubling", *made.version[2][0][1:]), ("online_ucb", *made.version[2][1][1:]))
    with pytest.raises(ValueError, match=r"bases 1\.base.*online_ucb"):
        read_config(write(tmp_path / "bad.toml", file.replace('"online_ucb", ep', '"online_ucv", ep')))


def test_grids_in_toml(tmp_path):
    text = GOOD.replace(
        "[grid]\nepsilon = [0.1, 0.5]",
        '[[tied]]\nkeys = ["epsilon", "exp3.window"]\nvalues = [0.5]\n'
        "[grid.environment]\nmeans = { easy = [0.1, 0.5, 0.9], hard = [0.4, 0.5, 0.6] }",
    )
    settings = read_config(write(tmp_path / "run.toml", text))
    means = {"easy": [0.1, 0.5, 0.9], "hard": [0.4, 0.5, 0.6]}
    assert settings["grid"] == {"environment.means": means, ("epsilon", "exp3.window"): [0.5]}
    text = GOOD.replace("[grid]\n", '[grid]\n"environment.means" = { a = [0.1, 0.2, 0.3] }\n')
    flat = read_config(write(tmp_path / "flat.toml", text))
    assert flat["grid"]["environment.means"] == {"a": [0.1, 0.2, 0.3]}


def test_many_values_on_one_axis_and_formats_asked_for_later(tmp_path, capsys):
    file = write(tmp_path / "run.toml", GOOD.replace("[0.1, 0.5]", str([round(0.05 * k, 2) for k in range(1, 9)])))
    out = tmp_path / "out"
    assert main(["run", file, "--out", str(out), "--quiet"]) == 0 and (out / "provenance.json").exists()
    assert main(["run", file, "--out", str(out), "--quiet", "--format", "pdf"]) == 0 and (out / "regret.pdf").exists()


def test_nested_bases_and_broken_modules(tmp_path, capsys):
    text = GOOD.replace("[grid]\n", "[grid]\nbase.base.tail_scale = [1.0, 2.0]\n")
    settings = read_config(write(tmp_path / "a.toml", text))
    assert settings["grid"]["base.base.tail_scale"] == [1.0, 2.0]
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('no')\n")
    text = GOOD.split("[[algorithm]]")[0] + '[[algorithm]]\nname = "broken_module:x"\n'
    assert main(["run", write(tmp_path / "b.toml", text), "--quiet"]) == 2
    assert "broken_module" in capsys.readouterr().err


def test_a_users_own_factory(tmp_path, capsys):
    (tmp_path / "my_module.py").write_text(
        "import jaxbandits as jb\n\n\ndef my_algorithm(*, num_arms, horizon):\n"
        "    return jb.algorithms.uniform(num_arms=num_arms, horizon=horizon)\n"
    )
    text = GOOD.split("[[algorithm]]")[0] + '[[algorithm]]\nname = "my_module:my_algorithm"\n'
    assert main(["run", write(tmp_path / "run.toml", text), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert "my_module:my_algorithm" in capsys.readouterr().out


def test_missing_file_and_directory(tmp_path, capsys):
    assert main(["run", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err
    assert main(["plot", str(tmp_path)]) == 2
    assert main(["run", write(tmp_path / "a.toml", GOOD), "--format", "gif"]) == 2


def test_list_and_privacy_in_it(capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*jb.algorithms.__all__, *jb.environments.__all__, *jb.adversaries.__all__))
    assert main(["list", "algorithms"]) == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    assert sorted(listed) == sorted(jb.algorithms.__all__)
    for name, line in listed.items():
        claim = jb.catalogue.case(name)[0].guarantee
        assert (f" {claim.model}, {claim.unit.replace('_', ' ')} " in line) == (claim.model != "none"), line


def test_the_table_of_who_plays_where(capsys):
    assert main(["list", "--plays"]) == 0
    where, who = capsys.readouterr().out.strip().split("\n\n")
    for text, names in ((where, jb.environments.__all__), (who, jb.algorithms.__all__)):
        assert all(text.count(f"`{name}`") == 1 + (name == "classification") for name in names)  # in two views
    columns = [cell.strip() for cell in who.splitlines()[0].split("|")]
    assert columns[1:-1] == ["algorithms", "nothing", "row", "decision set", "fixed set", "advice", "agents"]
    for name in ("ucb1", "linucb", "exp4", "byzantine_ucb", "phased_elimination"):
        [line] = [line for line in who.splitlines() if f"`{name}`" in line]
        said = {kind for kind, cell in zip(columns, line.split("|"), strict=True) if cell.strip() == "yes"}
        natural = {jb.sweeps.who_plays.what_is_shown(jb.catalogue.case(name)[1])}
        assert said and natural <= said and (name == "ucb1") == ("nothing" in said)


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    assert "jaxbandits run first.toml" in capsys.readouterr().out


def test_a_word_mistyped_is_one_line_with_what_may_be_meant(capsys):
    for typed, said in (
        ("rnu first.toml", "there is no 'rnu' (did you mean 'run'?)"),
        ("Run first.toml", "(did you mean 'run'?)"),
        ("run first.toml --engine locl", "there is no 'locl' (did you mean 'local'?)"),
        ("run first.toml --fromat png", "--fromat png (did you mean '--format'?); jaxbandits run --help"),
        ("run", "FILE; jaxbandits run --help"),
        ("list ucb1 --plays", "--plays is a table of everything: give it alone"),
        ("list UCB1", "nothing called 'UCB1' (did you mean 'ucb1'"),
        ("audit ldp_ucb --set epsilon", "--set epsilon: write KEY=VALUE, such as epsilon=1"),
        ("audit ldp_ucb --set epsilon=1 --set epsilon=2", "--set epsilon=2: it is given twice"),
        ("audit ldp_ucb --set epsilonn=1", "ldp_ucb has no argument 'epsilonn' (did you mean 'epsilon'?)"),
        ("audit --all --set epsilon=1", "--set epsilon=1: it is for one algorithm that is named"),
        ("audit ldp_ucb --epsilon 1", "--epsilon 1: ldp_ucb is no MODULE:CLASS of someone else: leave it out"),
        ("audit --all --epsilon 1", "--epsilon 1: --all is no MODULE:CLASS of someone else: leave it out"),
        ("audit ldp_ucb --unit user", "--unit user: it is for other people's learners: give --epsilon, too"),
    ):
        try:
            assert main(typed.split()) == 2
        except SystemExit as error:
            assert error.code == 2
        printed = capsys.readouterr().err
        assert said in printed and printed.count("\n") == 1


def test_a_label_stands_before_a_wrong_value_in_python():
    wrong = {"good": jb.algorithms.exp3, "local privacy": partial(jb.algorithms.ldp_exp3, epsilon=1.0, mixing="0.02")}
    with pytest.raises(ValueError, match=r"^local privacy: mixing = '0.02' must be a number"):
        jb.sweep(wrong, jb.environments.fixed_gap_losses(num_arms=3), horizon=9, seeds=8)
    missing = {"one": partial(jb.algorithms.ldp_ucb, epsilon=1.0), "other": jb.algorithms.ldp_ucb}
    with pytest.raises(TypeError, match=r"^other: ldp_ucb needs epsilon"):
        jb.sweep(missing, jb.environments.bernoulli_arms(means=[0.2, 0.8]), horizon=9, seeds=8)


def test_the_command_that_goes_on_is_the_one_that_was_typed():
    for typed in (
        "run a.toml --out o --seeds 9 --engine ray --format pdf", "worker a.toml --out o --shard 1/3 --seeds 9",
        "tune a.toml --out o --seeds 9 --format png,svg",
        "reproduce p/f --full --with a:b --with c:d --out o --format pdf",
    ):  # fmt: skip
        given = cli.parser().parse_args(typed.split())
        assert cli._command(given, given.command) == f"jaxbandits {typed}"
    shared = cli.parser().parse_args("worker a.toml --out o --shard 1/3 --seeds 9".split())
    assert cli._command(shared, "run") == "jaxbandits run a.toml --out o --seeds 9"  # when all shards are there
    there, found = SimpleNamespace(out=Path("o")), ({"a/x": 0}, {"a/x": 0, "a/y": 0}, {"a/x": 0, "b/x": 0})
    assert [cli._study_directory(there, "a/x", one) for one in found] == [Path("o"), Path("o/x"), Path("o/a/x")]
