"""How many small errors the tests notice: errors are drawn from the rooms that results and claims rest on.

    python benchmarks/mutants.py [--number 200] [--seed COMMIT] [--room ROOM or GROUP] [--folder runs/mutants]

An error is one change of one expression: an operator, a comparison, a constant by one, a condition, a term or an
argument that is left out, two that are swapped, another variable. Texts, annotations, what is raised and hints of speed
stay as they are. Half of the errors are from each group, each drawn uniformly in its own kind; the commit is the seed.

Each error lies in a copy of the sources with a copy of the compiled programs, in a process that is forked when JAX is
imported and not yet used. The room's tests run in the order of `--quick`, until one fails. A test that takes three
times as long as without the error has failed. The tests without an error run first: their times are the measure, and
those that fail there are left out. What is done is kept in the folder, line by line, and not done again.

An error that changes nothing is listed in `mutants.toml` with the reason, and is not counted; so is a function that
decides about speed alone.
"""

import argparse
import ast
import collections
import contextlib
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_suffix(".toml")

# Where errors are drawn, and the tests of the room.
ROOMS: dict[str, dict[str, tuple[list[str], list[str]]]] = {
    "trust": {
        "identity": (["sweeps/identity.py"], ["sweeps"]),
        "storage": (["sweeps/storage"], ["sweeps"]),
        "auditing": (["auditing"], ["privacy"]),
        "privacy": (["privacy.py"], ["privacy", "sweeps/test_spent.py"]),
        "mechanisms": (["mechanisms"], ["privacy", "contextual/test_exact_presets.py"]),
        "statistics": (["statistics.py"], ["pages/test_statistics.py", "sweeps/test_until.py"]),
    },
    "elsewhere": {
        "grid": (["sweeps/grid.py"], ["sweeps", "parts/test_wrong_calls.py"]),
        "engines": (["sweeps/engines"], ["sweeps", "engine"]),
        "searching": (["searching"], ["sweeps", "robust/test_worst_case.py", "parts/test_wrong_calls.py"]),
        "estimators": (["estimators"], ["estimators", "kernels/test_estimators.py", "robust", "linear", "federated"]),
        "adversaries": (["adversaries"], ["environments", "federated", "sweeps", "linear"]),
        "theory": (["theory"], ["theory", "contextual", "adversarial", "robust", "linear", "stochastic"]),
        "kernels": (["kernels"], ["kernels"]),
        "words": (["papers"], ["pages/test_papers.py", "pages/test_across.py", "pages/test_aggregate.py",
                                "pages/test_study_statistics.py", "pages/test_generated.py"]),
    },
}  # fmt: skip

ALL = ROOMS["trust"] | ROOMS["elsewhere"]

# ---------------------------------------------------------------- errors


class Error(NamedTuple):
    """One change of one expression, by its place in bytes of the file."""

    room: str
    path: str
    function: str
    line: int
    kind: str
    start: int
    stop: int
    before: str
    after: str

    def text(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.stop :]


OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod, ast.Pow: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
FUNCTIONS = [
    ("min", "max"), ("minimum", "maximum"), ("floor", "ceil"), ("any", "all"), ("argmin", "argmax"), ("sum", "mean"),
    ("log", "log1p"), ("sqrt", "abs"), ("zeros", "ones"), ("zeros_like", "ones_like"),
]  # fmt: skip
OTHER = {**dict(FUNCTIONS), **{b: a for a, b in FUNCTIONS}}
COMMUTE = {"min", "max", "minimum", "maximum", "hypot", "array_equal", "dot"}  # arguments may change places
SPEED = {
    "unroll", "donate_argnums", "static_argnums", "maxsize", "max_workers", "buffering", "stacklevel", "inline",
    "progress", "strict", "flush", "desc", "help", "title", "label", "dtype", "cheap",
}  # fmt: skip
SPOKEN = {"print", "write_line", "print_progress", "debug", "info", "exit"}  # functions that say something


def skipped(node: ast.AST) -> bool:
    """Whether no error is planted in it: texts, what is raised and said, and annotations."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name.startswith(("_warn", "warn", "refuse")) or name in SPOKEN
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom | ast.ClassDef)


def pieces(function: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated in a function, decorators and annotations aside; functions inside it too."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if skipped(node):
            continue
        yield node
        left = {"annotation", "returns", "decorator_list", "type_params"}
        for name, value in ast.iter_fields(node):
            if name not in left:
                waiting += [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, ast.AST)]


def changes(node: ast.AST, variables: list[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Pairs (kind, text) of what may stand in the place of an expression or a statement."""

    def put(**fields: Any) -> str:
        fresh = type(node)(**{name: getattr(node, name) for name in node._fields} | fields)
        text = ast.unparse(ast.fix_missing_locations(fresh))
        return f"({text})" if isinstance(node, ast.expr) else text

    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OPERATORS:
                yield "operator", put(op=OPERATORS[type(op)]())
            yield "term", f"({ast.unparse(left)})"
            if isinstance(op, ast.Add | ast.Mult):
                yield "term", f"({ast.unparse(right)})"
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            yield "comparison", put(ops=[COMPARISONS[type(op)](), *node.ops[1:]])
        case ast.Constant(value) if isinstance(value, bool):
            yield "constant", str(not value)
        case ast.Constant(value) if isinstance(value, int):
            yield "constant", str(value + 1)
            yield "constant", f"({value - 1})"
        case ast.Constant(value) if isinstance(value, float):
            yield "constant", f"({2 * value!r})" if value else "1.0"
            yield "constant", f"({value / 2!r})" if value else "0.5"
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "term", f"({ast.unparse(operand)})"
        case ast.BoolOp(op, values):
            yield "condition", put(op=ast.Or() if isinstance(op, ast.And) else ast.And())
            k = rng.randrange(len(values))
            yield "term", put(values=[v for j, v in enumerate(values) if j != k])
        case ast.IfExp(_, body, orelse):
            yield "condition", put(body=orelse, orelse=body)
        case ast.Call(func, args, keywords):
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            if name in OTHER and isinstance(func, ast.Attribute):
                yield "function", put(func=ast.Attribute(func.value, OTHER[name]))
            elif name in ("min", "max", "any", "all"):
                yield "function", put(func=ast.Name(OTHER[name]))
            plain = [not isinstance(a, ast.Starred) for a in args]
            if len(args) > 1 and all(plain) and name not in COMMUTE:
                k = rng.randrange(len(args) - 1)
                if ast.unparse(args[k]) != ast.unparse(args[k + 1]):
                    yield "swapped", put(args=[*args[:k], args[k + 1], args[k], *args[k + 2 :]])
            if len(args) > 1 and all(plain):
                if name in ("min", "max", "minimum", "maximum", "where", "clip", "append", "sha"):
                    yield "argument", put(args=args[:-1])
            for k, keyword in enumerate(keywords):
                if keyword.arg and keyword.arg not in SPEED:
                    yield "argument", put(keywords=[*keywords[:k], *keywords[k + 1 :]])
        case ast.Name(name, ast.Load()) if name in variables and len(variables) > 1:
            yield "name", rng.choice([other for other in variables if other != name])
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield "statement", "pass"


def draw_from(room: str, path: Path, rng: random.Random) -> Iterator[Error]:
    """Every error of a file, one for each expression and kind."""
    source = path.read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    for top in ast.parse(source).body:
        inside = top.body if isinstance(top, ast.ClassDef) else [top]
        for function in inside:
            if not isinstance(function, ast.FunctionDef) or function.name in ("__repr__", "_repr_html_", "__str__"):
                continue
            name = top.name if top is function else f"{top.name}.{function.name}"
            nodes = [*pieces(function)]
            if room == "words" and not any(isinstance(n, ast.Name) and n.id in ("Claim", "verdict") for n in nodes):
                continue
            callees = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
            variables = sorted((stored | given) - callees - {"self", "cls", "_"})
            keywords = {id(k.value) for n in nodes if isinstance(n, ast.Call) for k in n.keywords if k.arg in SPEED}
            texts = {id(n.value) for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
            tests = {id(n.test) for n in nodes if isinstance(n, ast.If | ast.While)}
            for node in nodes:
                if not hasattr(node, "lineno") or id(node) in keywords | texts:
                    continue
                start = starts[node.lineno - 1] + node.col_offset
                stop = starts[node.end_lineno - 1] + node.end_col_offset
                found = [*changes(node, variables, rng)]
                if id(node) in tests:
                    found.append(("condition", f"(not ({ast.unparse(node)}))"))
                for kind, after in found:
                    before = source[start:stop].decode()
                    where = path.relative_to(ROOT).as_posix()
                    yield Error(room, where, name, node.lineno, kind, start, stop, before, after)


def draw(rooms: list[str], number: int, seed: str) -> list[Error]:
    """Errors of some rooms without repetition: first a kind is drawn, then one of its errors."""
    rng = random.Random(seed)
    kinds: dict[str, list[Error]] = collections.defaultdict(list)
    for room in rooms:
        for place in ALL[room][0]:
            found = ROOT / "jaxbandits" / place
            for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
                for error in draw_from(room, path, rng):
                    kinds[error.kind].append(error)
    drawn: list[Error] = []
    while len(drawn) < number and any(kinds.values()):
        kind = rng.choice(sorted(k for k in kinds if kinds[k]))
        drawn.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
    return drawn


def why_equivalent(error: Error) -> str | None:
    """Why an error changes nothing, where `mutants.toml` says so."""
    rows = tomllib.loads(EQUIVALENT.read_text()).get("equivalent", []) if EQUIVALENT.exists() else []
    for row in rows:
        if all(getattr(error, name) == value for name, value in row.items() if name != "why"):
            return str(row["why"])
    return None


# ---------------------------------------------------------------- runs


class Recorder:
    """A pytest plugin: a line when a test begins and when it ends."""

    def __init__(self, path: Path, left_out: set[str]) -> None:
        self.file, self.left_out = path.open("w"), left_out

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if plain(item.nodeid) not in self.left_out]

    def pytest_runtest_logstart(self, nodeid):
        print(json.dumps(["start", plain(nodeid), time.time()]), file=self.file, flush=True)

    def pytest_runtest_logreport(self, report):
        if report.failed or report.when == "call":
            print(json.dumps(["end", plain(report.nodeid), report.outcome]), file=self.file, flush=True)

    def pytest_runtest_logfinish(self, nodeid):
        print(json.dumps(["finish", plain(nodeid), time.time()]), file=self.file, flush=True)


def plain(nodeid: str) -> str:
    """A test's name without its group."""
    return nodeid.rpartition("@")[0] or nodeid


class Place:
    """A copy of the sources, and of the compiled programs, for one process at a time."""

    def __init__(self, folder: Path) -> None:
        self.root, self.cache = folder / "sources", folder / "programs_0"
        shutil.rmtree(folder, ignore_errors=True)
        told = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, told.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def begin(self, programs: Path, error: Error | None, words: list[str], left_out: set[str], log: Path) -> int:
        """The number of a new process that runs tests."""
        shutil.rmtree(self.cache, ignore_errors=True)
        # a process that an earlier run left behind may still write into the old one
        self.cache = self.cache.with_name(f"programs_{int(self.cache.name.partition('_')[2]) + 1}")
        if error is not None:
            if programs.exists():
                shutil.copytree(programs, self.cache, copy_function=os.link)
            target = self.root / error.path
            target.write_bytes(error.text((ROOT / error.path).read_bytes()))
        number = os.fork()
        if number:
            return number
        status = 70
        try:
            os.setsid()
            out = os.open(log.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            status = self.run_tests(programs if error is None else self.cache, words, left_out, log)
        finally:
            sys.stdout.flush()
            os._exit(int(status))

    def run_tests(self, cache: Path, words: list[str], left_out: set[str], log: Path) -> int:
        import jax
        import pytest
        import quick

        os.chdir(self.root)
        quick.ROOT = self.root
        sys.path[:] = [str(self.root)] + [p for p in sys.path if Path(p) not in (ROOT, ROOT / "tests")]
        os.environ |= {
            "PYTHONPATH": str(self.root), "JAX_COMPILATION_CACHE_DIR": str(cache), "JAXBANDITS_CACHE": str(cache),
        }  # fmt: skip
        jax.config.update("jax_compilation_cache_dir", str(cache))
        plugin = Recorder(log, left_out)
        given = ["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", *words]
        return pytest.main([*given, "-o", f"cache_dir={self.root.parent / 'pytest'}"], plugins=[plugin])

    def restore(self, error: Error | None) -> None:
        if error is not None:
            shutil.copy2(ROOT / error.path, self.root / error.path)


Job = tuple[str, Error | None, list[str]]  # its name, the error, arguments of pytest


class Running(NamedTuple):
    place: Place
    error: Error | None
    key: str
    log: Path
    began: float


def run_all(
    jobs: Iterator[Job], folder: Path, measure: dict[str, float], left_out: set[str], workers: int
) -> Iterator[tuple[str, Error | None, dict[str, Any]]]:
    """(key, error, what happened) of each job, `workers` at a time."""
    programs = folder.parent / "programs"
    places = [Place(folder / f"place_{k}") for k in range(workers)]
    running: dict[int, Running] = {}
    waiting = True
    while waiting or running:
        while waiting and places:
            job = next(jobs, None)
            if job is None:
                waiting = False
                break
            key, error, words = job
            place, log = places.pop(), folder / "logs" / f"{key}.log"
            log.parent.mkdir(exist_ok=True)
            number = place.begin(programs, error, words, left_out, log)
            running[number] = Running(place, error, key, log, time.time())
        time.sleep(0.1)
        for number, run in [*running.items()]:
            late = run.error is not None and is_late(run.log, measure, run.began)
            if late:
                os.killpg(number, signal.SIGKILL)
            ended, status, used = os.wait4(number, 0 if late else os.WNOHANG)
            if ended:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(number, signal.SIGKILL)  # what the tests started
                del running[number]
                run.place.restore(run.error)
                places.append(run.place)
                code = os.waitstatus_to_exitcode(status)
                yield run.key, run.error, what_happened(run, code, late, used.ru_utime + used.ru_stime)


def events(log: Path) -> list[list[Any]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.endswith("]")] if log.exists() else []


def is_late(log: Path, measure: dict[str, float], began: float) -> bool:
    """Whether the test that runs takes three times as long as without an error, and a minute at least."""
    last = next(reversed(events(log)), None)
    if last is None or last[0] != "start":
        return time.time() - (last[2] if last and last[0] == "finish" else began) > 300 and last is None
    waiting = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # a busy machine is slow without an error, too
    return time.time() - last[2] > waiting * max(60.0, 3 * measure.get(last[1], 0.0))


def what_happened(run: Running, code: int, late: bool, cpu: float) -> dict[str, Any]:
    """Which test failed, after how many tests and seconds of tests."""
    told = events(run.log)
    tests = [event for event in told if event[0] == "start"]
    by = next((name for kind, name, outcome in told if kind == "end" and outcome == "failed"), None)
    if late:
        by = f"time: {tests[-1][1]}" if tests else "time"
    elif by is None and code not in (0, 5):
        by = f"no test could run (exit {code})"
    seconds = time.time() - tests[0][2] if tests else 0.0
    return {"by": by, "tests": len(tests), "seconds": round(seconds, 1), "cpu": round(cpu, 1)}


def measure_times(rooms: set[str], folder: Path, workers: int) -> tuple[dict[str, float], set[str]]:
    """Seconds of each test of some rooms without an error, and those that fail then; the compiled programs are kept."""
    kept = folder.parent / "without.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    paths = sorted({f"tests/{place}" for room in rooms for place in ALL[room][1]})
    todo = {path: digest_of(path) for path in paths if known.get(path, {}).get("digest") != digest_of(path)}
    jobs = ((f"without_{k}", None, [path]) for k, path in enumerate(todo))
    for key, _, _ in run_all(jobs, folder, {}, set(), workers):
        path = [*todo][int(key.rpartition("_")[2])]
        began: dict[str, float] = {}
        seconds: dict[str, float] = {}
        failed = []
        for kind, name, told in events(folder / "logs" / f"{key}.log"):
            if kind == "start":
                began[name] = told
            elif kind == "finish":
                seconds[name] = told - began[name]
            elif told == "failed":
                failed.append(name)
        known[path] = {"digest": todo[path], "seconds": seconds, "failed": failed}
        kept.write_text(json.dumps(known))
        print(
            f"{path}: {len(seconds):,} tests, {sum(seconds.values()):,.0f} s, fail without an error: {failed}",
            flush=True,
        )
    measured = [known[path] for path in paths]
    return (
        {name: time for told in measured for name, time in told["seconds"].items()},
        {name for told in measured for name in told["failed"]},
    )


def digest_of(path: str) -> str:
    """What tests at a path are."""
    place = ROOT / path
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def main() -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=200, help="errors, half of them of each group (default: 200)")
    parser.add_argument(
        "--seed", default=head.stdout.strip()[:8], help="what the draw depends on (default: the commit)"
    )
    parser.add_argument("--room", choices=[*ROOMS, *ALL], help="as many errors of one room, or of one group of rooms")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs/mutants", help="where everything is kept")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="print the errors, run nothing")
    given = parser.parse_args()
    parts = {given.room: [*ROOMS.get(given.room, [given.room])]} if given.room else {k: [*v] for k, v in ROOMS.items()}
    drawn = [
        (f"{name}_{k}", error)
        for name, rooms in parts.items()
        for k, error in enumerate(draw(rooms, given.number // len(parts), f"{given.seed} {name}"))
    ]
    if given.list:
        print(*(f"{key}: {describe(error)}" for key, error in drawn), sep="\n")
        return
    run_errors(drawn, given.folder / given.seed, given.workers)


def describe(error: Error) -> str:
    """One line about an error."""
    before, after = " ".join(error.before.split()), " ".join(error.after.split())
    return f"{error.path}:{error.line} {error.function}: {before[:90]} -> {after[:90]}"


def run_errors(drawn: list[tuple[str, Error]], folder: Path, workers: int) -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    for name in ("settings", "jax", "pandas", "scipy.stats", "xarray"):  # the settings first: JAX reads them once
        importlib.import_module(name)
    import dealt
    import quick

    quick.users()  # what names what is the same with every error
    os.environ["DEAL"] = str(dealt.turn())
    folder.mkdir(parents=True, exist_ok=True)
    measure, left_out = measure_times({error.room for _, error in drawn}, folder, workers)
    results = folder / "results.jsonl"
    done = {row["key"]: row for row in map(json.loads, results.read_text().splitlines())} if results.exists() else {}

    def jobs() -> Iterator[tuple[str, Error, list[str]]]:
        for key, error in drawn:
            if key not in done and why_equivalent(error) is None:
                changed = f"{error.path}::{error.function.partition('.')[0]}"
                words = ["-x", "--quick", "--changed", changed, "--seconds", "1e9"]
                yield key, error, words + [f"tests/{place}" for place in ALL[error.room][1]]

    for key, error, told in run_all(jobs(), folder, measure, left_out, workers):
        done[key] = {"key": key, **error._asdict(), **told}
        with results.open("a") as file:
            print(json.dumps(done[key]), file=file)
        print(
            f"{len(done)} of {len(drawn)} {key}: {describe(error)}: {told['by'] or 'SURVIVED'}, {told['cpu']} CPU s",
            flush=True,
        )
    print_table(drawn, done)


def print_table(drawn: list[tuple[str, Error]], done: dict[str, dict[str, Any]]) -> None:
    from jaxbandits.formatting import markdown_table

    rows = []
    for room in ALL:
        ours = [done[key] for key, error in drawn if error.room == room and key in done]
        if ours:
            caught = [row for row in ours if row["by"]]
            soon = [row for row in caught if row["seconds"] <= 60]
            cpu = f"{sum(row['cpu'] for row in ours):.0f}"
            rows.append([room, *map(str, (len(ours), len(caught), len(soon))), cpu])
    equal = sum(why_equivalent(error) is not None for _, error in drawn)
    head = ["room", "errors", "caught", "within a minute of tests", "CPU s"]
    print(markdown_table([head, *rows], right=4))
    print(f"{equal} of {len(drawn)} change nothing (mutants.toml)\n")
    for key, error in drawn:
        if key in done and not done[key]["by"]:
            print(f"survived: {key} {describe(error)}")


if __name__ == "__main__":
    main()
