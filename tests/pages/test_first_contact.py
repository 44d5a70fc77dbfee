"""What a newcomer types first: help with examples, completion in a shell, and `jaxbandits new`."""

import importlib
import shlex
import shutil
import subprocess
import sys

import pytest
from dealt import others

import jaxbandits as jb
from jaxbandits import cli
from jaxbandits.commands import completion


def test_every_command_has_examples_that_parse():
    parser = cli.parser()
    commands = completion._commands(parser)
    assert {example.split()[1] for example in cli.EXAMPLES} == {*commands}
    assert all(example in parser.format_help() for example in cli.FIRST_EXAMPLES)
    for example in [*cli.EXAMPLES, *cli.FIRST_EXAMPLES]:
        given = parser.parse_args(shlex.split(example.partition(" > ")[0], comments=True)[1:])
        assert example in cli.FIRST_EXAMPLES or example in commands[given.command].format_help()


@pytest.mark.skipif(not shutil.which("bash"), reason="completes in bash")
def test_bash_completes_commands_options_and_names(tmp_path, capsys):
    assert cli.main(["completion", "bash"]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)

    def completed(*words):
        line = (
            f"source {script}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; "
            '_shtab_jaxbandits; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout.split()

    assert {"run", "new", "completion"} <= set(completed("jaxbandits", ""))
    assert completed("jaxbandits", "run", "--se") == ["--seeds"]
    assert completed("jaxbandits", "list", "kl_") == ["kl_ucb"]
    assert "my_algorithm" not in completed("jaxbandits", "audit", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_with_the_same_words(shell):
    script = completion.script(shell, cli.parser())
    assert all(word in script for word in ("reproduce", "seeds", "kl_ucb", "private-adversarial/exp3-leak"))


@pytest.mark.compiles(30)  # what a newcomer runs, checks and tests
@pytest.mark.dealt(2)
def test_a_new_algorithm_passes_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "my_own"]) == 0
    printed = capsys.readouterr().out.splitlines()
    files = {"my_own.py", "my_own_environment.py", "my_own.toml", "test_my_own.py"}
    assert {path.name for path in tmp_path.iterdir()} == files
    commands = [shlex.split(line) for line in printed[1:]]
    assert [words[:2] for words in commands] == [
        ["jaxbandits", "check"], ["jaxbandits", "run"], ["pytest", "test_my_own.py"],
    ]  # fmt: skip
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(commands[0][1:]) == 0
    assert cli.main([*commands[1][1:], "--seeds", "8", "--quiet"]) == 0
    assert jb.load("runs/my_own").sizes["exploration"] == 3
    tests = importlib.import_module("test_my_own")
    for name in [name for name in dir(tests) if name.startswith("test_")]:
        getattr(tests, name)()
    # what it learned is more than luck: an algorithm that does not learn fails the test that was written
    monkeypatch.setattr(tests, "my_own", jb.algorithms.uniform)
    with pytest.raises(AssertionError):
        tests.test_it_learns()
    before = {name: (tmp_path / name).read_bytes() for name in files}
    capsys.readouterr()
    assert cli.main(["new", "my_own"]) == 2
    assert "already" in capsys.readouterr().err
    assert {name: (tmp_path / name).read_bytes() for name in files} == before
    for name in ("my_own", "my_own_environment", "test_my_own"):
        sys.modules.pop(name, None)


VARIANTS = [(on, private) for on in ("arms", "contexts") for private in (None, "local", "central")]


def write_variant(directory, on, private, name="my_own"):
    options = ["--on", on, *(["--private", private] if private else [])]
    assert cli.main(["new", name, "--out", str(directory), *options]) == 0


@pytest.mark.parametrize(("on", "private"), others(VARIANTS[1:], 10))
@pytest.mark.compiles(30)
def test_a_new_algorithm_with_a_guarantee_or_over_contexts_passes_as_it_is(tmp_path, monkeypatch, on, private):
    """Its own test checks and audits it, and compares what it learned."""
    write_variant(tmp_path, on, private)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tests = importlib.import_module("test_my_own")
    for name in [name for name in dir(tests) if name.startswith("test_")]:
        getattr(tests, name)()
    if private:
        made = importlib.import_module("my_own")
        monkeypatch.setattr(made, "laplace_scale", lambda *given: jb.mechanisms.laplace_scale(*given) / 2)
        tampered = made.my_own(num_arms=4, horizon=100, **({"dim": 3} if on == "contexts" else {}))
        assert tampered.guarantee.spend(tampered.params) == (2.0, 0.0)  # what is said follows from the noise
    for name in ("my_own", "my_own_environment", "test_my_own"):
        sys.modules.pop(name, None)


def test_what_is_written_is_clean_and_says_what_it_spends(tmp_path, monkeypatch):
    for on, private in VARIANTS:
        name = f"own_{on}_{private or 'plain'}".lower()
        write_variant(tmp_path, on, private, name)
        monkeypatch.syspath_prepend(str(tmp_path))
        made = getattr(importlib.import_module(name), name)
        sizes = {"num_arms": 4, "horizon": 130} | ({"dim": 3} if on == "contexts" else {})
        algorithm = made(**sizes, **({"epsilon": 0.5} if private else {}))
        assert algorithm.guarantee.model == (private or "none")
        assert algorithm.guarantee.spend(algorithm.params) == ((0.5, 0.0) if private else (float("inf"), 0.0))
        assert [span.slots for span in algorithm.schedule] == [50 if private == "central" else 1]
        text = (tmp_path / f"{name}.toml").read_text()
        assert ("epsilon = " in text) == bool(private) and "|" not in text
    for command in (["check", "--select", "E,F,I,W,B,UP,N"], ["format", "--check"]):
        words = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", "."]
        subprocess.run(words, cwd=tmp_path, check=True)


def test_a_variant_of_the_package_is_refused_in_words(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for more in (["--private", "local"], ["--on", "contexts"]):
        assert cli.main(["new", "my_own", "--wing", "stochastic", *more]) == 2
        assert "leave --private and --on out" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_a_new_algorithm_of_the_package_has_two_files(tmp_path, monkeypatch):
    """Its transcription, which stands in its test, is what it plays as it is."""
    name = "a_name_as_long_as_any_is"
    monkeypatch.chdir(tmp_path)
    room = tmp_path / "jaxbandits/algorithms"
    (room / "stochastic").mkdir(parents=True)
    (room / "stochastic/__init__.py").touch()
    before = {*tmp_path.rglob("*.py*")}
    assert cli.main(["new", name, "--wing", "stochastic"]) == 0
    new = {*tmp_path.rglob("*.py*")} - before
    assert {path.name for path in new} == {f"{name}.py", f"test_{name}.py"}
    monkeypatch.setattr(jb.algorithms, "__file__", str(room / "__init__.py"))
    assert jb.algorithms._homes()[f"stochastic.{name}"] == [name]
    assert max(len(line) for path in new for line in path.read_text().splitlines()) <= 120
    monkeypatch.syspath_prepend(str(room / "stochastic"))
    monkeypatch.syspath_prepend(str(tmp_path / "tests/stochastic"))
    made, tests = importlib.import_module(name), importlib.import_module(f"test_{name}")
    monkeypatch.setitem(vars(jb.algorithms), name, getattr(made, name))
    tests.test_its_path_is_the_literal_one()


def test_a_name_that_cannot_be_has_a_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    remedies = {"My-Own": "my_own", "class": "my_algorithm", "ucb1": "my_ucb1", "json": "my_json", "numpy": "my_numpy"}
    for name, remedy in (remedies | {"../up": "up", "test_x": "x"}).items():
        assert cli.main(["new", name]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and repr(name) in said and said.rstrip().endswith(f"such as {remedy}")
    assert list(tmp_path.iterdir()) == []
