"""How much there is to read: lines, names, types, copied lines, and functions between an argument and its use.

    python benchmarks/anatomy.py                 lines, machinery an algorithm, names, types, copied lines
    python benchmarks/anatomy.py check           compares with anatomy.toml, for `make lint`; exit 1 where one has risen
    python benchmarks/anatomy.py write           writes anatomy.toml, with frames of Python 3.11
    python benchmarks/anatomy.py frames          functions of the package on the stack, and entered by a sweep
    python benchmarks/anatomy.py --of FOLDER     of another checkout; `frames` needs PYTHONPATH=FOLDER instead

Machinery an algorithm is the code that does not stand under `algorithms/`, divided by the number of algorithms: lines
that are neither blank nor comment nor docstring. A participle is no name of a function, since nobody finds `written` by
guessing; properties and other values may have one. Copied are pairs of places with the same six lines or more,
docstrings included, blank lines and brackets left out. `frames` counts the functions on the stack where an epsilon of
`ldp_ucb` becomes a scale of noise, those where noise is drawn, and the functions of the package that a warm sweep of
two points enters.
"""

import argparse
import ast
import io
import itertools
import os
import re
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("anatomy.toml")
HEAD = """# What `make lint`, of frames a test, lets no change raise; `python benchmarks/anatomy.py write` counts
# it anew. Two may rise by a line here that says for what: machinery an algorithm, in lines of code, and the
# functions that a warm sweep enters. The last line comes down by itself.
"""
RAISED = ("machinery an algorithm", "functions of a warm sweep")  # tables of their own, a line a reason
RUN = 6  # lines that make a copy
LONG = 50  # lines of a function, its docstring left out
COMMON = 8  # places of a run beyond which it is an idiom, not a copy
# participles that do not end in -ed; with a prefix such as un- too
IRREGULAR = frozenset(
    """begun borne bought broken brought built caught chosen dealt done drawn driven eaten fallen felt flown forgotten
    fought found frozen given gone grown heard held hidden kept known laid led left lent lost made meant met paid proven
    ridden risen said seen sent shaken shown sold sought spent spoken stolen stood sworn taken taught thought thrown
    told torn understood woken won worn woven written""".split()
)
NO_PARTICIPLE = frozenset("bleed embed exceed feed indeed need proceed seed speed succeed".split())
PROPERTIES = {"property", "cached_property"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree: ast.AST) -> set[int]:
    """Numbers of the lines of all docstrings."""
    found = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)) and ast.get_docstring(node) is not None:
            found |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return found


def code_lines(text: str, tree: ast.AST) -> int:
    """Lines that are neither blank nor comment nor docstring."""
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return len({number for number, line in lines if line and not line.startswith("#")} - docstring_lines(tree))


def long_functions(tree: ast.AST) -> int:
    """Functions with more than `LONG` lines beside their docstring."""
    lengths = []
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            first = node.body[0]
            text = ast.get_docstring(node) is not None
            lengths.append(node.end_lineno - node.lineno + 1 - text * (first.end_lineno - first.lineno + 1))
    return sum(length > LONG for length in lengths)


def is_participle(word: str) -> bool:
    """Whether a word is one as `written`, `told` and `unmoved` are.

    >>> [word for word in ("written", "write", "unheard", "moved", "seed", "red") if is_participle(word)]
    ['written', 'unheard', 'moved']
    """
    if word in NO_PARTICIPLE:
        return False
    return word.removeprefix("un") in IRREGULAR or re.fullmatch(r"[a-z]{3,}ed", word) is not None


def function_names(trees: list[ast.Module]) -> Iterator[tuple[str, bool]]:
    """Names of functions, but of Python's own, and whether each is a property."""
    for node in itertools.chain.from_iterable(map(ast.walk, trees)):
        if isinstance(node, FUNCTIONS) and not node.name.startswith("__"):
            decorators = {getattr(x, "attr", getattr(x, "id", "")) for x in node.decorator_list}
            yield node.name, bool(decorators & PROPERTIES)


def names(trees: list[ast.Module]) -> dict[str, float]:
    """How functions are called."""
    every = list(function_names(trees))
    words = [name.strip("_") for name, is_property in every if not is_property]
    return {
        "functions called by a participle": sum(map(is_participle, words)),
        "functions whose first word is a participle": sum(is_participle(word.partition("_")[0]) for word in words),
        "names of functions in three places": sum(n > 2 for n in Counter(name for name, _ in every).values()),
    }


def annotations(tree: ast.Module) -> Iterator[ast.expr]:
    """Those of arguments, of what functions return, and of the fields of classes."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from (x.annotation for x in every if x is not None and x.annotation is not None)
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.ClassDef):
            yield from (x.annotation for x in node.body if isinstance(x, ast.AnnAssign))


def any_share(trees: list[ast.Module]) -> float:
    """The share of annotations that are `Any` or another name for it, in percent."""
    known = {"Any"}
    while more := {name for tree in trees for name in aliases(tree, known)} - known:
        known |= more
    every = [getattr(x, "attr", getattr(x, "id", "")) for x in itertools.chain.from_iterable(map(annotations, trees))]
    return round(100 * sum(name in known for name in every) / len(every), 2)


def aliases(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Names that a module gives to one of the known ones."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.value, "id", "") in known:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def is_factory(node: ast.stmt) -> bool:
    """Whether it defines a public algorithm."""
    return isinstance(node, FUNCTIONS) and any(
        isinstance(x, ast.Call) and getattr(x.func, "id", "") == "factory" for x in node.decorator_list
    )


def sizes(package: Path) -> dict[str, float]:
    """What there is to read of a package."""
    files = {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}
    trees = {name: ast.parse(text) for name, text in files.items()}
    code = {name: code_lines(text, trees[name]) for name, text in files.items()}
    wings = [name for name in files if name.startswith("algorithms/")]
    algorithms = sum(is_factory(node) for name in wings for node in trees[name].body)
    said = [comment for text in files.values() for comment in comments(text)]
    every = list(trees.values())
    return {
        "lines": sum(len(text.splitlines()) for text in files.values()),
        "lines of code": sum(code.values()),
        "algorithms": algorithms,
        "machinery an algorithm": round((sum(code.values()) - sum(code[name] for name in wings)) / algorithms, 1),
        f"functions over {LONG} lines": sum(map(long_functions, every)),
        **names(every),
        "percent of annotations that are Any": any_share(every),
        "places that the formatter leaves out": sum(bool(re.search(r"fmt: *(skip|off)", x)) for x in said),
        "suppressions": sum(bool(re.search(r"noqa|type: *ignore|pyright: *ignore", x)) for x in said),
    }


def limits(counted: dict[str, float]) -> dict[str, float]:
    """Of what was counted, what may not rise."""
    free = ("lines", "lines of code", "algorithms")
    return {name: count for name, count in counted.items() if name not in free}


def allowed() -> dict[str, float]:
    """The most of everything that anatomy.toml holds."""
    written = tomllib.loads(FILE.read_text())
    return written["most"] | written["frames"] | {name: round(sum(written[name].values()), 1) for name in RAISED}


def check(package: Path) -> list[str]:
    """A line for everything that has risen above what anatomy.toml holds."""
    most = allowed()
    return [
        f"{name}: {count:,} where {FILE.name} has {most[name]:,}: bring it down, or raise it there and say why"
        for name, count in limits(sizes(package)).items() if count > most[name]
    ]  # fmt: skip


def write(package: Path) -> None:
    """The file anew; what was raised keeps its lines, and the last of each comes down."""
    tables = {"most": limits(sizes(package)), "frames": frames()}
    held = tomllib.loads(FILE.read_text())
    for name in RAISED:
        (count,) = (rows.pop(name) for rows in tables.values() if name in rows)
        *_, last = held[name]
        tables[f'"{name}"'] = held[name] | {last: round(count - sum(held[name].values()) + held[name][last], 1)}
    rows = (f"\n[{name}]\n" + "".join(f'"{key}" = {x}\n' for key, x in rows.items()) for name, rows in tables.items())
    FILE.write_text(HEAD + "".join(rows))


def copies(package: Path) -> int:
    """Pairs of files, or of places of one file, with the same `RUN` lines or more."""
    places = defaultdict(list)
    files = {path.as_posix(): path.read_text().splitlines() for path in sorted(package.rglob("*.py"))}
    lines = {name: [x.strip() for x in text if x.strip(" ()[]{},")] for name, text in files.items()}
    for name, kept in lines.items():
        for i in range(len(kept) - RUN + 1):
            places[tuple(kept[i : i + RUN])].append((name, i))
    found = set()
    for same in places.values():
        if len(same) <= COMMON:
            found |= set(itertools.combinations(sorted(same), 2))
    begins = {(a, b) for a, b in found if ((a[0], a[1] - 1), (b[0], b[1] - 1)) not in found}
    return len({(a[0], b[0]) if a[0] != b[0] else (a, b) for a, b in begins})


def of_package(frame: Any) -> bool:
    return "/jaxbandits/" in frame.f_code.co_filename.replace("\\", "/")


def on_stack(frame: Any) -> int:
    """Functions of the package on a frame's stack."""
    found = 0
    while frame is not None:
        found, frame = found + of_package(frame), frame.f_back
    return found


def frames() -> dict[str, int]:
    """What stands between a sweep's argument and its use."""
    os.environ["JAXBANDITS_CACHE"] = tempfile.mkdtemp()  # a program that is found there is not traced
    import jaxbandits as jb
    from jaxbandits import random

    def swept() -> None:
        jb.sweep(
            jb.algorithms.ldp_ucb, jb.environments.bernoulli_arms(means=[0.2, 0.7]), horizon=64, seeds=8,
            grid={"epsilon": [1.25, 2.0]}, checkpoints=4, progress=False,
        )  # fmt: skip

    laplace, drawn, scaled, entered = random.Draws.laplace, [], [], set()

    def watched(self: Any, *args: Any, **given: Any) -> Any:
        drawn.append(on_stack(sys._getframe(1)))
        return laplace(self, *args, **given)

    def profile(frame: Any, event: str, result: Any) -> None:
        if event == "call" and of_package(frame):
            entered.add(frame.f_code)
        elif event == "return" and of_package(frame):
            params = getattr(result, "params", None)
            if 1 / 1.25 in (result if isinstance(result, float) else None, getattr(params, "noise_scale", None)):
                scaled.append(on_stack(frame))

    random.Draws.laplace = watched
    swept()
    random.Draws.laplace = laplace
    swept()
    sys.setprofile(profile)
    swept()
    first, entered = entered, set()
    swept()  # on a busy machine one of the two may look at a clock more
    sys.setprofile(None)
    return {"to the scale": scaled[0], "to the draw": min(drawn), "functions of a warm sweep": len(first & entered)}


def main() -> int:
    forms = ["sizes", "check", "write", "frames"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=forms, default="sizes", help="default: sizes")
    parser.add_argument("--of", metavar="FOLDER", type=Path, default=Path(__file__).parents[1], help="another checkout")
    chosen = parser.parse_args()
    package = chosen.of / "jaxbandits"
    if chosen.what == "check":
        risen = check(package)
        print("\n".join(risen), end="\n" if risen else "")
        return bool(risen)
    if chosen.what == "write":
        write(package)
        return 0
    counted = frames() if chosen.what == "frames" else sizes(package) | {"copied": copies(package)}
    for name, count in counted.items():
        print(f"{count:10,} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
