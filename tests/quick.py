"""`--quick`: the tests that the change since the last commit on main can break, the nearest first, for a minute.

What changed is told by git: from where the branch left main to the files as they lie; on main, what is not committed,
or else the last commit. Of a module it is the functions and classes whose lines changed. `--changed PATH` or
`--changed PATH::NAME` say it instead.

A test's distance is the number of steps by which it reaches a change: it names a function, which names another one, and
so on until one that changed. A name stands for what the file imports under it, through the public doors of packages
too. Tests in a file of the module's name (`test_store.py` of `store.py`) come first, cases of the catalogue last. Where
no step leads from a test to the change, it is not collected; where there is no time, it is skipped, and the last line
counts these.
"""

import ast
import contextlib
import functools
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 60.0  # of tests, in each process
CASES = 1000  # the least distance of a case of the catalogue
WRONG_CALLS = ROOT / "tests/parts/wrong_calls.toml"
OTHER_STUDY = 100  # how much farther a test of a study is that does not reach the change
# The folder with a room's tests, where it has another name, and by how many steps tests elsewhere are farther.
FOLDERS = {"auditing": "privacy", "mechanisms": "privacy", "adversaries": "environments", "searching": "sweeps"}
ELSEWHERE = 2
_began = None

Node = tuple[str, str]  # a module, and what it defines: "" is the module's own body

# ---------------------------------------------------------------- what changed


def changed_lines() -> dict[str, list[range] | None]:
    """Paths from the root of what changed, and the lines; None: all."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.split("\n") if done.returncode == 0 else []

    for main in ("main", "origin/main", "master"):
        base = git("merge-base", "HEAD", main)
        if base:
            break
    since = base[0] if base and base[0] != git("rev-parse", "HEAD")[0] else "HEAD"
    untracked = [*filter(None, git("ls-files", "--others", "--exclude-standard"))]
    found = lines_of_diff(git("diff", "-U0", "--no-renames", since)) | dict.fromkeys(untracked)
    return found or lines_of_diff(git("diff", "-U0", "--no-renames", "HEAD~1"))


def lines_of_diff(diff: list[str]) -> dict[str, list[range] | None]:
    """The lines as they are now that a diff without context changes."""
    found: dict[str, list[range] | None] = {}
    lines: list[range] = []
    for line in diff:
        if line.startswith("diff --git "):
            found[line.rpartition(" b/")[2]] = lines = []
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            start, count = int(hunk[1]), int(hunk[2] or 1)
            lines.append(range(start, start + max(count, 1)))
    return found


# ---------------------------------------------------------------- what names what


def module_of(path: str) -> str:
    """`jaxbandits/random.py` -> `jaxbandits.random`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package and of the tests, parsed, and programs that tests hold as texts, named by these."""
    paths = [*(ROOT / "jaxbandits").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    found = {module_of(p.relative_to(ROOT).as_posix()): ast.parse(p.read_text()) for p in sorted(paths)}
    for tree in [tree for name, tree in found.items() if name.startswith("tests.")]:
        texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        for text in texts:
            if re.search(r"^(from|import) jaxbandits", text, re.MULTILINE):
                with contextlib.suppress(SyntaxError):  # a part of a program
                    found[text] = ast.parse(text)
    return found


@functools.cache
def helpers() -> dict[str, str]:
    """What tests import by its stem: `plays` -> `tests.plays`."""
    return {name.rpartition(".")[2]: name for name in modules() if name.startswith("tests.") and ".test_" not in name}


def own_name(statement: ast.FunctionDef | ast.ClassDef) -> str:
    """Its name; those called `_`, which a decorator hands to something else, are told apart by their lines."""
    return f"_ at {statement.lineno}" if statement.name == "_" else statement.name


def handed_to(module: str, statement: ast.stmt) -> Iterator[str]:
    """The definitions of a module that a decorator hands a function to, as `@root.defjvp` does to `root`."""
    for decorator in getattr(statement, "decorator_list", ()):
        decorator = getattr(decorator, "func", decorator)  # of a call
        if isinstance(decorator, ast.Attribute) and isinstance(decorator.value, ast.Name):
            yield from {decorator.value.id} & definitions(module).keys()


@functools.cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """What a module defines at its top level, and "", its whole body."""
    found: dict[str, ast.stmt] = {}
    for statement in modules()[module].body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[own_name(statement)] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found[node.id] = statement
    return found


@functools.cache
def imports(module: str) -> dict[str, tuple[str, str | None]]:
    """What a module's names stand for that it imports from the package or the tests: (module, name there)."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                base = helpers().get(alias.name, alias.name)
                if base.split(".")[0] in ("jaxbandits", "tests"):
                    found[alias.asname or alias.name.split(".")[0]] = (
                        base if alias.asname else base.split(".")[0],
                        None,
                    )
                    if not alias.asname and base.startswith("tests."):
                        found[alias.name] = (base, None)
        elif isinstance(node, ast.ImportFrom) and node.module:
            base = helpers().get(node.module, node.module)
            if base.split(".")[0] in ("jaxbandits", "tests"):
                found |= {alias.asname or alias.name: (base, alias.name) for alias in node.names}
    return found


@functools.cache
def homes(name: str) -> tuple[str, ...]:
    """The modules of the package that define a public name."""
    found = [m for m in modules() if m.startswith("jaxbandits") and name in definitions(m)]
    return tuple(found) if not name.startswith("_") else ()


@functools.cache
def home_of(base: str, name: str | None) -> tuple[Node, ...]:
    """What `name` of a module is: through a package's door, what is defined in its rooms."""
    if name is None:
        return ((base, ""),) if base in modules() else ()
    if base not in modules():
        return ()
    if name in definitions(base):
        return ((base, name),)
    if name in imports(base) and imports(base)[name] != (base, name):
        return home_of(*imports(base)[name])
    module = ((f"{base}.{name}", ""),) if f"{base}.{name}" in modules() else ()
    return module + tuple((home, name) for home in homes(name) if home.startswith(f"{base}."))


@functools.cache
def methods() -> dict[str, tuple[Node, ...]]:
    """Names of methods and fields that one class of the package alone has."""
    found: dict[str, list[Node]] = {}
    for module in modules():
        for name, statement in definitions(module).items() if module.startswith("jaxbandits") else ():
            for node in statement.body if isinstance(statement, ast.ClassDef) else ():
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                    found.setdefault(node.name, []).append((module, name))
    return {name: tuple(homes) for name, homes in found.items() if len(homes) == 1}


def named_in(module: str, tree: ast.AST) -> Iterator[Node]:
    """What a piece of a module names."""
    ours, theirs = definitions(module), imports(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.arg):  # an argument of a test is a fixture's name
            name = node.id if isinstance(node, ast.Name) else node.arg
            if name in ours:
                yield module, name
            elif name in theirs:
                yield from home_of(*theirs[name])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in modules():
            yield from ((node.value, name) for name in ("", *definitions(node.value)))  # a program for a process
        elif isinstance(node, ast.JoinedStr):  # the name of a module that is put together
            start = getattr(node.values[0], "value", "") if len(node.values) == 2 else ""
            if isinstance(start, str) and re.fullmatch(r"jaxbandits\.[\w.]*\.", start):
                rooms = [name for name in modules() if name.startswith(start)]
                yield from ((room, name) for room in rooms for name in ("", *definitions(room)))
        elif isinstance(node, ast.Attribute):
            yield from places_of(module, node)
            yield from methods().get(node.attr, ())
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "with_form":  # a kernel's module in words
            yield from home_of(f"jaxbandits.kernels.{getattr(node.args[0], 'value', '')}", "form")


def places_of(module: str, node: ast.Attribute) -> tuple[Node, ...]:
    """What `a.b.c` is, where `a` is a module that was imported."""
    if isinstance(node.value, ast.Attribute):
        bases = places_of(module, node.value)
    elif isinstance(node.value, ast.Name) and node.value.id in imports(module):
        bases = home_of(*imports(module)[node.value.id])
    else:
        return ()
    return tuple(place for base, name in bases if name == "" for place in home_of(base, node.attr))


@functools.cache
def studies() -> dict[str, Node]:
    """PAPER/FIGURE -> its study, which a table of the package names in words."""
    table = ast.literal_eval(definitions("jaxbandits.papers")["STUDIES"].value)
    places = {
        f"{paper}/{figure}": (paper, *where.split(":")) for paper in table for figure, where in table[paper].items()
    }
    return {
        name.replace("_", "-"): (f"jaxbandits.papers.{paper}.{module}", study[0] if study else "STUDY")
        for name, (paper, module, *study) in places.items()
    }


@functools.cache
def users() -> dict[Node, set[Node]]:
    """Who names what: for each definition, those whose text has its name."""
    found: dict[Node, set[Node]] = {study: {("jaxbandits.papers", "STUDIES")} for study in studies().values()}
    for module, tree in modules().items():
        pieces = [*definitions(module).items()]
        pieces += [("", s) for s in tree.body if not isinstance(s, ast.FunctionDef | ast.ClassDef)]
        for name, piece in pieces:
            for place in named_in(module, piece):
                found.setdefault(place, set()).add((module, name))
            for other in handed_to(module, piece):
                found.setdefault((module, name), set()).add((module, other))
    for word in set(re.findall(r"\w+", WRONG_CALLS.read_text())):  # calls that a table holds
        for home in homes(word):
            found.setdefault((home, word), set()).add(("tests.parts.wrong_calls", "rows"))
    return found


def distances(changed: set[Node]) -> dict[Node, int]:
    """How many steps lead from each definition to a change."""
    found = dict.fromkeys(changed, 0)
    waiting = list(found)
    for place in waiting:  # it grows meanwhile
        for user in users().get(place, ()):
            if user not in found:
                found[user] = found[place] + 1
                waiting.append(user)
    return found


def homes_of_parts(part) -> set[Node]:
    """The functions in a factory or a partial of one, bases included."""
    if isinstance(part, functools.partial):
        return homes_of_parts(part.func) | homes_of_parts([*part.args, *part.keywords.values()])
    if isinstance(part, list | tuple):
        return set().union(*map(homes_of_parts, part))
    if getattr(part, "__module__", "") == "jaxbandits.catalogue":  # an environment that is put together there
        return homes_of_parts([*part().world])
    if callable(part) and hasattr(part, "__module__"):
        return {(part.__module__, getattr(part, "__name__", "")), (part.__module__, "")}
    return set()


@functools.cache
def readers(name: str) -> frozenset[Node]:
    """What names a file that is no module, such as a template."""
    found = set()
    for module, tree in modules().items():
        for piece, statement in (*definitions(module).items(), ("", tree)):
            if any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(statement)):
                found.add((module, piece))
    return frozenset(found)


# ---------------------------------------------------------------- which tests


class Change:
    """What changed, and how far a test is from it."""

    def __init__(self, lines: dict[str, list[range] | None]) -> None:
        self.files = set(lines)
        self.changed: set[Node] = set()
        for path, where in lines.items():
            if module_of(path) in modules() and path.endswith(".py"):
                self.changed |= self.places(module_of(path), where)
            elif path.startswith("jaxbandits/"):
                self.changed |= readers(Path(path).name)
        self.stems = {module.rpartition(".")[2] for module, _ in self.changed}
        rooms = {module.split(".")[1] for module, _ in self.changed if "." in module}
        self.folders = {FOLDERS.get(room, room) for room in rooms}
        self.names = {name for _, name in self.changed if name and not name.startswith("_")}
        self.distances = distances(self.changed)

    @staticmethod
    def places(module: str, where: list[range] | None) -> set[Node]:
        """The definitions of a module that have a changed line; those of its body alone change all who import it."""
        pieces = definitions(module)
        if where is None:
            return {(module, name) for name in ("", *pieces)}
        found = set()
        for lines in where:
            inside = {n for n, s in pieces.items() if first_line(s) < lines.stop and lines.start <= s.end_lineno}
            found |= {(module, name) for name in inside or ("",)}
        return found

    def __call__(self, module: str, name: str) -> int | None:
        return self.distances.get((module, name))

    @functools.cache  # noqa: B019  there is one change
    def case(self, name: str) -> int | None:
        """The distance of a case of the catalogue: its own parts are nearer than the engine, which plays them all."""
        from jaxbandits import catalogue

        example = catalogue.EVERYTHING[name]
        parts = [example.algorithm, example.environment, example.reward_adversary, example.message_adversary]
        homes = homes_of_parts([part for part in parts if part is not None])
        own = [self.distances[home] for home in homes if home in self.distances]
        engine = [self("jaxbandits.checking.subject", "Subject"), self("jaxbandits.sweeps.engines.one_call", "Player")]
        played = [distance + CASES for distance in engine if distance is not None]
        return min([CASES + distance for distance in own] or [CASES + distance for distance in played], default=None)

    @functools.cache  # noqa: B019
    def file(self, path: Path) -> int | None:
        """The distance of the nearest test in a file."""
        name = path.relative_to(ROOT).as_posix()
        module = module_of(name)
        if name in self.files or path.stem.removeprefix("test_") in self.stems:
            return 0
        if name.startswith("jaxbandits/"):  # its doctests
            return 0 if module in {changed for changed, _ in self.changed} else None
        return min((d for (place, _), d in self.distances.items() if place == module), default=None)

    def item(self, item, case: str | None) -> int | None:
        """How far a collected test is; None: nothing leads to the change."""
        if case is not None:
            return self.case(case)
        near = self.file(item.path)
        if near is None or not isinstance(item, pytest.Function):
            return near
        module = module_of(item.path.relative_to(ROOT).as_posix())
        name = item.cls.__name__ if item.cls else item.originalname
        ways = [self(module, name), *(self(module, fixture) for fixture in item.fixturenames)]
        distance = min((way for way in ways if way is not None), default=None)
        given = item.name.partition("[")[2].removesuffix("]")
        study = next((study for name, study in studies().items() if f"{given}-".startswith(f"{name}-")), None)
        if distance is not None and study is not None and study not in self.distances:
            return distance + OTHER_STUDY
        if distance is not None and study is not None and not item.get_closest_marker("pages"):
            return 0  # what all studies share, such as their pages, takes a minute
        if self.names & set(re.findall(r"\w+", item.name)):
            return 0
        if distance is None:
            return CASES - 1 if near == 0 else None
        return distance if near == 0 else distance + 1 + ELSEWHERE * (item.path.parent.name not in self.folders)


def first_line(statement: ast.stmt) -> int:
    """Of a definition with its decorators."""
    return min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only what the change since main can break")
    parser.addoption(
        "--changed", action="append", help="with --quick: PATH or PATH::NAME that changed, in place of git's"
    )
    parser.addoption("--seconds", type=float, default=SECONDS, help="with --quick: how long tests may take")


def pytest_configure(config):
    config.change = None
    if config.getoption("quick"):
        given = config.getoption("changed")
        config.change = Change(dict(map(lines_of, given)) if given else changed_lines())


def lines_of(changed: str) -> tuple[str, list[range] | None]:
    """What `PATH::NAME` says."""
    path, _, name = changed.partition("::")
    if not name:
        return path, None
    found = [s for known, s in definitions(module_of(path)).items() if known.partition(" ")[0] == name]
    if not found:
        raise ValueError(f"--changed {changed}: {path} defines nothing of that name")
    return path, [range(first_line(statement), statement.end_lineno + 1) for statement in found]


def pytest_ignore_collect(collection_path, config):
    from cases import FILES

    if config.change is None or collection_path.suffix != ".py" or collection_path.name in FILES:
        return None
    return True if config.change.file(collection_path) is None else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    from cases import case_of

    if config.change is None:
        return
    near = {item: config.change.item(item, case_of(item)) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if near[item] is None])
    items[:] = sorted((item for item in items if near[item] is not None), key=near.get)


NO_TIME = "there is no time for it in make quick"


def pytest_runtest_setup(item):
    global _began
    if item.config.change is not None:
        _began = _began or time.monotonic()
        if time.monotonic() - _began > item.config.getoption("seconds"):
            pytest.skip(NO_TIME)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter, config):
    if config.change is not None:
        stats = terminalreporter.stats
        skipped = sum(NO_TIME in str(report.longrepr) for report in stats.get("skipped", []))
        total = sum(len(stats.get(kind, [])) for kind in ("passed", "failed", "skipped", "xfailed", "xpassed"))
        files = sorted(config.change.files)
        named = ", ".join(files[:6]) + (f" and {len(files) - 6} more" if len(files) > 6 else "")
        terminalreporter.write_line(f"changed: {named}")
        terminalreporter.write_line(
            f"no time for {skipped:,} of {total:,} tests" if skipped else f"all {total:,} tests run"
        )
