"""What a program reaches: whatever it may read counts, words do not, and neither does the algorithm beside it."""

import ast
import json
import math
import shutil
from pathlib import Path

import fresh_process
import pytest

import jaxbandits
from jaxbandits import catalogue, simulator
from jaxbandits.sweeps.compilation import executables, sources

PACKAGE = Path(jaxbandits.__file__).parent
# The cases of the catalogue in a fresh process: their functions' names, with what these reach.
NAMES = """
import json
from jaxbandits import catalogue, simulator
from jaxbandits.sweeps.compilation import executables
parts = {name: simulator.parts_of(*catalogue.case(name), None, None, "float32") for name in catalogue.ALGORITHMS}
print(json.dumps({name: executables.name_of_parts(one, kernels=True) for name, one in parts.items()}))
"""


def with_other_words(text):
    """A file with a comment above every function and class, and with other docstrings."""
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    for x in ast.walk(tree):
        if isinstance(x, ast.Expr) and isinstance(x.value, ast.Constant) and isinstance(x.value.value, str):
            line, begin = lines[x.lineno - 1], text.splitlines()[x.lineno - 1].index('"""', x.col_offset) + 3
            lines[x.lineno - 1] = f"{line[:begin]}Other words. {line[begin:]}"
        elif isinstance(x, ast.FunctionDef | ast.ClassDef):
            first = min([x.lineno, *(decorator.lineno for decorator in x.decorator_list)])
            lines[first - 1] = f"{' ' * x.col_offset}# A comment.\n{lines[first - 1]}"
    return "".join(lines)


def test_words_anywhere_change_no_name(tmp_path):
    package, names = tmp_path / PACKAGE.name, []
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.rglob("*.py"):
        path.write_text(with_other_words(path.read_text()))
    for place in (PACKAGE.parent, tmp_path):
        changes = {"PYTHONPATH": str(place), "JAXBANDITS_CACHE": str(tmp_path / "cache")}
        run = fresh_process.run(NAMES, cwd=tmp_path, env=fresh_process.environment(**changes))
        assert run.returncode == 0, run.stderr[-2000:]
        names.append(json.loads(run.stdout))
    assert [name for name in names[0] if names[0][name] != names[1][name]] == []
    assert sum(name is None for name in names[0].values()) < 5  # those that are made of another library's functions


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Another package for `sources` to read, which is imported nowhere. Gives a function that writes into it."""
    monkeypatch.setattr(sources, "_PACKAGE", tmp_path / PACKAGE.name)
    monkeypatch.setattr(sources.version, "LOADED", math.inf)

    def write(texts):
        for name, text in texts.items():
            path = tmp_path / PACKAGE.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for cache in (sources.files, sources.state, sources._homes, sources._content, sources._text):
            cache.cache_clear()

    yield write
    write({})


SOME = ("ucb1", "moss", "exp3", "private_batched", "crimed", "cw_oful", "linucb", "byzantine_ucb", "barbar")
# a file, text before and after -> the cases that reach it, of these
EDITS = {
    "algorithms/stochastic/ucb1.py": ("2 * jnp.log", "3 * jnp.log", {"ucb1"}),
    "algorithms/stochastic/arm_means.py": ("import ", "import sys, ", {"ucb1", "moss"}),
    "theory/robust_frontier.py": ("import ", "import sys, ", {"exp3", "private_batched", "crimed"}),  # by packages
    "window.py": ("before + 1 + jnp", "1 + before + jnp", {*SOME}),
    "kernels/filter_kernel.py": ("import ", "import sys, ", {*SOME}),  # by a text
    "sweeps/identity.py": ("lasting=False, batch=True", "batch=True, lasting=False", {*SOME}),
    "reports/citations.py": ("import ", "import os, ", set()),
}


def test_an_edit_concerns_what_reaches_it_and_nothing_else(elsewhere):
    elsewhere({str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")})
    parts = {name: simulator.parts_of(*catalogue.case(name), None, None, "float32") for name in SOME}
    modules = {name: executables.code_name(one).modules for name, one in parts.items()}
    before = {(name, kernels): sources.read(modules[name], kernels)[0] for name in SOME for kernels in (False, True)}
    assert len(set(before.values())) == len(before)
    for file, (old, new, reaching) in EDITS.items():
        text = (PACKAGE / file).read_text()
        assert old in text
        elsewhere({file: text.replace(old, new)})
        changed = {one for one in before if sources.read(modules[one[0]], one[1])[0] != before[one]}
        assert {name for name, kernels in changed if kernels} == reaching, file
        assert {name for name, kernels in changed if not kernels} == (set() if "kernels/" in file else reaching), file
        elsewhere({file: text})


ALWAYS = ("sweeps/compilation/compiled.py", "sweeps/identity.py")
FILES = {
    "a/__init__.py": "", "a/one.py": "def f(): ...\n", "a/two.py": "g = 1\n", "b.py": "",
    "a/three.py": "from jaxbandits.a.one import f\nimport os\n",
} | dict.fromkeys(ALWAYS, "")  # fmt: skip
A = {"a", "a.one", "a.two", "a.three"}
WAYS = {
    "from jaxbandits.a.one import f": {"a.one"},
    "from jaxbandits.a import one": {"a.one"},
    "from jaxbandits.a import f": {"a.one"},
    "from jaxbandits.a import g as h": {"a.two"},
    "from jaxbandits.a import os": {"a.three", "a.one"},
    "from jaxbandits.a import unknown": A,
    "from jaxbandits import a": A,
    "from jaxbandits.a import *": A,
    "def f():\n    from jaxbandits import b": {"b"},
    "if TYPE_CHECKING:\n    from jaxbandits.b import x": {"b"},
    "x = import_module(f'jaxbandits.a.{name}')": A,
    "'jaxbandits.b'  # words": set(),
    "import os": set(),
    "import jaxbandits": {*A, "b"},
    "from . import b": {*A, "b"},
}


@pytest.mark.parametrize("text", WAYS)
def test_what_may_be_imported_is_reached(elsewhere, text):
    elsewhere(FILES | {"top.py": text})
    others = {name[:-3].replace("/", ".") for name in ("top.py", *ALWAYS)}
    reached = {name.removeprefix("jaxbandits.") for name in sources.read(["jaxbandits.top"], True)[1]}
    assert reached - others == WAYS[text]


ALIKE = ("x = 1", "'words'\nx = 1", "x = 1  # one", "\nx = (\n    1\n)")
VALUES = ("1", "1.0", "True", "'1'", "-1", "None", "'None'", "[1]", "(1,)", "y[1:]", "y[:1]", "y[::1]")
FUNCTIONS = ("def x(a, /, b): ...", "def x(a, b, /): ...", "def x(a, *, b): ...")
UNLIKE = (*(f"x = {value}" for value in VALUES), "x: int = 1", *FUNCTIONS)


def test_the_hash_is_that_of_the_syntax(elsewhere):
    def sha(text):
        elsewhere({"top.py": text})
        return sources._text("jaxbandits.top").sha

    assert len(set(map(sha, ALIKE))) == 1
    assert len(set(map(sha, UNLIKE))) == len(UNLIKE)


def test_rules_that_no_trace_shows_are_the_engines():
    """A user's part is named by its trace. Rules for `vmap` and for lowering do not show there."""
    texts = {name: path.read_text() for name, path in sources.files().items()}
    rules = {name for name, text in texts.items() if "def_vmap" in text or "Primitive(" in text}
    assert {"jaxbandits.numerics.fusion", "jaxbandits.estimators.spectral_filter"} <= rules
    assert rules <= set(sources.read(sources.RULES, False)[1])


def test_a_file_that_changed_meanwhile_is_noticed(monkeypatch):
    roots = frozenset({"jaxbandits.algorithms.stochastic.ucb1"})
    executables._sources.cache_clear()
    assert executables._sources(roots, False) == sources.read(roots, False)[0]
    path = sources.files()["jaxbandits.algorithms.stochastic.arm_means"]
    monkeypatch.setattr(sources.version, "LOADED", path.stat().st_ctime)
    executables._sources.cache_clear()
    assert executables._sources(roots, False) is None  # also where it was read before
    with pytest.raises(sources.Changed):
        sources.read(roots, False)
    executables._sources.cache_clear()


def test_files_that_change_before_the_first_sweep_are_noticed():
    """Algorithms are loaded when they are first used, and what looks at files later still."""
    script = """
import time
import jaxbandits as jb
between = time.time()
jb.algorithms.ucb1
from jaxbandits.sweeps.compilation import sources
assert sources.version.LOADED < between
"""
    run = fresh_process.run(script)
    assert run.returncode == 0, run.stderr
