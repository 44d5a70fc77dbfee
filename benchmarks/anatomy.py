"""How much there is to read: lines, copied lines, and functions that stand between an argument and its use.

    python benchmarks/anatomy.py                 lines, machinery an algorithm, copied lines, long functions
    python benchmarks/anatomy.py frames          functions of the package on the stack, and entered by a sweep
    python benchmarks/anatomy.py --of FOLDER     of another checkout; `frames` needs PYTHONPATH=FOLDER instead

Machinery an algorithm is what does not stand under `algorithms/`, divided by the number of algorithms. Copied are pairs
of places with the same six lines or more, docstrings included, blank lines and brackets left out. `frames` counts the
functions on the stack where an epsilon of `ldp_ucb` becomes a scale of noise, those where noise is drawn, and the
functions of the package that a warm sweep of two points enters.
"""

import argparse
import ast
import itertools
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

RUN = 6  # lines that make a copy
LONG = 50  # lines of a function, its docstring left out
COMMON = 8  # places of a run beyond which it is an idiom, not a copy


def copies(files: dict[str, list[str]]) -> int:
    """Pairs of files, or of places of one file, with the same `RUN` lines or more."""
    places = defaultdict(list)
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


def long_functions(tree: ast.Module) -> int:
    """Functions with more than `LONG` lines beside their docstring."""
    lengths = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            lengths.append(node.end_lineno - node.lineno + 1 - text * (first.end_lineno - first.lineno + 1))
    return sum(length > LONG for length in lengths)


def sizes(package: Path) -> dict[str, float]:
    """What there is to read of a package."""
    files = {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}
    lines = {name: text.splitlines() for name, text in files.items()}
    own = sum(len(text) for name, text in lines.items() if name.startswith("algorithms/"))
    stub = ast.parse((package / "algorithms/__init__.pyi").read_text())
    algorithms = sum(len(node.names) for node in stub.body if isinstance(node, ast.ImportFrom))
    total = sum(map(len, lines.values()))
    return {
        "lines": total,
        "algorithms": algorithms,
        "machinery an algorithm": round((total - own) / algorithms, 1),
        "copied": copies(lines),
        f"functions over {LONG} lines": sum(long_functions(ast.parse(text)) for text in files.values()),
    }


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
    sys.setprofile(None)
    return {"to the scale": scaled[0], "to the draw": min(drawn), "functions of a warm sweep": len(entered)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["sizes", "frames"], default="sizes", help="default: sizes")
    parser.add_argument("--of", metavar="FOLDER", type=Path, default=Path(__file__).parents[1], help="another checkout")
    chosen = parser.parse_args()
    for name, count in (frames() if chosen.what == "frames" else sizes(chosen.of / "jaxbandits")).items():
        print(f"{count:10,} {name}")


if __name__ == "__main__":
    main()
