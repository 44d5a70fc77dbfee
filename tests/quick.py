"""`--quick`: the tests that the change since the last commit on main can break, the nearest first, for a minute.

What changed is told by git: from where the branch left main to the files as they lie; on main, what is not committed,
or else the last commit. A test is the nearer, the more directly it is about a changed module:

0. its file changed, has the module's name (`test_store.py` of `store.py`), or its own name or case names what changed;
1. it is about a case of the catalogue whose algorithm, environment or adversary imports the module, however indirectly;
2. its file imports the module, or names a public function or class of it;
3. it is about any other case of the catalogue, where the engine changed that plays all of them.

Other tests are not collected. What there is no time for is skipped, and said to be.
"""

import ast
import functools
import re
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 60  # of tests, in each process
_began = None


def changed_files() -> set[str]:
    """Paths from the root of what changed."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.split("\n") if done.returncode == 0 else []

    for main in ("main", "origin/main", "master"):
        base = git("merge-base", "HEAD", main)
        if base:
            break
    since = base[0] if base and base[0] != git("rev-parse", "HEAD")[0] else "HEAD"
    untracked = git("ls-files", "--others", "--exclude-standard")
    found = {*git("diff", "--name-only", since), *untracked} - {""}
    return found or {*git("diff", "--name-only", "HEAD~1")} - {""}


# ---------------------------------------------------------------- what imports what


def module_of(path: str) -> str:
    """`jaxbandits/random.py` -> `jaxbandits.random`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    paths = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "jaxbandits").rglob("*.py")))
    return {module_of(path): ast.parse((ROOT / path).read_text()) for path in paths}


@functools.cache
def imports(module: str) -> frozenset[str]:
    """Modules of the package that one imports: where a name comes through a package, the module that defines it."""
    return frozenset(found for base, name in imported_names(modules()[module]) for found in home_of(base, name))


def imported_names(tree: ast.AST):
    """Pairs (module, name or None) of a file's imports from the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.startswith("jaxbandits"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxbandits"):
            yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def home_of(base: str, name: str | None) -> tuple[str, ...]:
    """Where `from base import name` looks."""
    if name and f"{base}.{name}" in modules():
        return (f"{base}.{name}",)
    if name and base in modules() and base != "jaxbandits":
        for module, other in imported_names(modules()[base]):
            if other == name and module != base:
                return home_of(module, other)
    return (base,) if base in modules() else ()


def closure(start) -> set[str]:
    """Modules and all that they import, however indirectly."""
    found, waiting = set(), list(start)
    while waiting:
        module = waiting.pop()
        if module in modules() and module not in found:
            found.add(module)
            waiting += imports(module)
    return found


def homes_of_parts(part) -> set[str]:
    """The modules of the functions in a factory or a partial of one, bases included."""
    if isinstance(part, functools.partial):
        return homes_of_parts(part.func) | homes_of_parts([*part.args, *part.keywords.values()])
    if isinstance(part, list | tuple):
        return set().union(*map(homes_of_parts, part))
    if getattr(part, "__module__", "") == "jaxbandits.catalogue":  # an environment that is put together there
        return homes_of_parts([*part().world])
    return {part.__module__} if callable(part) and hasattr(part, "__module__") else set()


def readers(name: str) -> set[str]:
    """The modules that name a file which is no module, such as a template."""
    texts = {name: {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)} for name, tree in modules().items()}
    return {module for module, found in texts.items() if name in found}


@functools.cache
def definitions() -> dict[str, list[str]]:
    """The modules that define a public function or class of a name."""
    found: dict[str, list[str]] = {}
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    return found


def public_names(module: str) -> set[str]:
    """Functions and classes that only this module defines, and its own name: not `State` or `program`."""
    return {name for name, homes in definitions().items() if homes == [module]} | {module.rpartition(".")[2]}


def words_of(tree: ast.AST) -> set[str]:
    """What a file speaks of: attributes, imported names, and words in texts, but not its own variables."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found |= {*node.name.split(".")}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 100:
            found |= set(re.findall(r"\w+", node.value))
    return found


# ---------------------------------------------------------------- which tests


class Change:
    """What changed, and how near a test is to it."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        ours = {f for f in files if f.startswith("jaxbandits/")}
        self.modules = {module_of(f) for f in ours if f.endswith(".py")} & {*modules()}
        self.modules |= set().union(*(readers(Path(f).name) for f in ours if not f.endswith(".py")))
        self.names = set().union(*map(public_names, self.modules))
        self.helpers = {Path(f).stem for f in files if f.startswith("tests/") and not Path(f).name.startswith("test_")}

    @functools.cached_property
    def engine(self) -> bool:
        """Whether what plays every case changed."""
        return bool(self.modules & closure(["jaxbandits.checking.subject", "jaxbandits.sweeps.engines.one_call"]))

    @functools.cache  # noqa: B019  there is one change
    def case(self, name: str) -> int | None:
        from jaxbandits import catalogue

        example = catalogue.EVERYTHING[name]
        parts = [example.algorithm, example.environment, example.reward_adversary, example.message_adversary]
        if self.modules & closure(homes_of_parts([part for part in parts if part is not None])):
            return 1
        return 3 if self.engine else None

    @functools.cache  # noqa: B019
    def file(self, path: Path) -> int | None:
        name = path.relative_to(ROOT).as_posix()
        stems = {module.rpartition(".")[2] for module in self.modules}
        if name in self.files or path.stem.removeprefix("test_") in stems:
            return 0
        if path.parts[len(ROOT.parts)] == "jaxbandits":  # its doctests
            return 0 if module_of(name) in self.modules else None
        tree = ast.parse(path.read_text())
        if words_of(tree) & (self.names | self.helpers):
            return 2
        used = {found for base, other in imported_names(tree) for found in home_of(base, other)}
        return 2 if used & self.modules else None

    def item(self, item, case: str | None) -> int | None:
        """How near a collected test is; None: not at all."""
        if case is not None:
            return self.case(case)
        near = self.file(item.path)
        return 0 if near == 2 and set(re.findall(r"\w+", item.name)) & self.names else near


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="only what the change since main can break")


def pytest_configure(config):
    config.change = Change(changed_files()) if config.getoption("quick") else None


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


def pytest_runtest_setup(item):
    global _began
    if item.config.change is not None:
        _began = _began or time.monotonic()
        if time.monotonic() - _began > SECONDS:
            pytest.skip("there is no time for it in make quick")


def pytest_terminal_summary(terminalreporter, config):
    if config.change is not None:
        skipped = len(terminalreporter.stats.get("skipped", []))
        files = ", ".join(sorted(config.change.files)[:6])
        terminalreporter.write_line(f"changed: {files}; tests that there was no time for: {skipped}")
