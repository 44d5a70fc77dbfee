"""The command line: `jaxbandits` with the sub-commands run, worker, tune, offline, reproduce, list, plot, report,
audit, check, new, cache and completion.

A TOML file is a program: its names `module:function` are imported, and run. Bad input is one line and exit code 2. What
goes wrong later, such as a full disk or an error in an algorithm, is one line and exit code 1.
"""

import argparse
import codecs
import contextlib
import io
import json
import os
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from pathlib import Path

from jaxbandits.version import __version__

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

# What `--help` of `jaxbandits` itself ends with, and that of every command, whose name is the second word.
FIRST_EXAMPLES = """\
jaxbandits list algorithms
jaxbandits run first.toml
jaxbandits reproduce private-adversarial/exp3-leak
jaxbandits new my_algorithm""".splitlines()
EXAMPLES = """\
jaxbandits run first.toml
jaxbandits run first.toml --out runs/first --seeds 1000 --format png,pdf
jaxbandits run first.toml --fresh
jaxbandits worker first.toml --out runs/first --shard 3/16
jaxbandits tune first.toml
jaxbandits tune first.toml --out runs/rates --seeds 200
jaxbandits offline clicks.toml
jaxbandits offline clicks.toml --out runs/clicks --format png,pdf
jaxbandits reproduce private-adversarial/exp3-leak
jaxbandits reproduce private-adversarial --full --out runs/private
jaxbandits reproduce private-robust-mab/bernoulli --with my_algorithm:my_algorithm
jaxbandits list algorithms
jaxbandits list kl_ucb
jaxbandits list algorithms --json
jaxbandits list --plays
jaxbandits list papers
jaxbandits plot runs/first --against epsilon
jaxbandits plot runs/first --out pictures --format pdf
jaxbandits audit ldp_ucb --runs 100000
jaxbandits audit my_algorithm:my_algorithm --set epsilon=1
jaxbandits audit their_learner:Learner --epsilon 1 --horizon 100 --runs 60000
jaxbandits audit --all
jaxbandits check my_algorithm:my_algorithm
jaxbandits check my_algorithm:my_algorithm --environment bernoulli_losses --audit
jaxbandits report runs/first
jaxbandits report runs/first runs/second --out both.html
jaxbandits new my_algorithm
jaxbandits new my_algorithm --out experiments
jaxbandits new my_algorithm --private local --on contexts
jaxbandits cache info
jaxbandits cache clear
jaxbandits completion bash > ~/.local/share/bash-completion/completions/jaxbandits
jaxbandits completion zsh > ~/.zfunc/_jaxbandits     # a folder of your $fpath
jaxbandits completion fish > ~/.config/fish/completions/jaxbandits.fish""".splitlines()


def _path(text: str) -> Path:
    """A path of the command line: a shell expands `~` in `--out ~/runs` and not in `--out=~/runs`."""
    from jaxbandits.validation import path_of

    try:
        return path_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class _Parser(argparse.ArgumentParser):
    """A parser that says what may have been meant. What is wrong is one line, as it is with files."""

    def error(self, message: str):
        from jaxbandits.formatting import nearest

        if wrong := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            known = [word.strip(" '") for word in wrong[2].split(",")]
            message = f"there is no {wrong[1]!r}{nearest(wrong[1], known)}: give one of {', '.join(known)}"
        elif wrong := re.match(r"unrecognized arguments: (-\S+)", message):
            message = f"{message}{nearest(wrong[1], self._option_string_actions)}"
        self.exit(EXIT_BAD_INPUT, f"jaxbandits: {message}; {self.prog} --help says more\n")

    def parse_known_args(self, args=None, namespace=None):
        """An unknown option is refused by the command that does not know it, and not by all of them together."""
        given, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return given, unknown


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = _Parser(prog="jaxbandits", description="Batched simulation of private and robust bandits.")
    top.add_argument("--version", action="version", version=f"jaxbandits {__version__}")
    commands = top.add_subparsers(dest="command")
    run = commands.add_parser("run", help="run a TOML file, or go on with it, and write results, table and pictures")
    words = "compute one share of a TOML file's sweep, for job arrays over a shared disk"
    share = commands.add_parser("worker", help=words)
    tuner = commands.add_parser("tune", help="choose the settings that a TOML file's table [tune] asks for, or go on")
    judging = commands.add_parser(
        "offline", help="judge on a half of a log what a TOML file's algorithms learn on the other"
    )
    for each in (run, share, tuner, judging):
        words = "TOML; a program: its `module:function` are imported"
        each.add_argument("file", metavar="FILE", type=_path, help=words)
        named = "<name of FILE>-tune" if each is tuner else "<name of FILE>"
        each.add_argument("--out", metavar="DIR", type=_path, help=f"where to write (default: runs/{named})")
        each.add_argument("--seeds", metavar="N", type=int, help="seeds to run instead of the file's")
        each.add_argument("--quiet", action="store_true", help="no estimate and no progress bar")
    run.add_argument("--engine", default="local", choices=["local", "ray"], help="ray: a cluster (extra 'ray')")
    run.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")
    run.add_argument("--fresh", action="store_true", help="throw away what DIR holds and start over")
    share.add_argument("--shard", metavar="i/n", required=True, help="which of n shares, counted from 0 or from 1")
    for each in (tuner, judging):
        each.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")
    again = commands.add_parser("reproduce", help="run a paper's figures and tables, or go on with them")
    words = "a figure, a paper for all of its own, or all; `list papers` names them"
    again.add_argument("name", metavar="PAPER/FIGURE", help=words)
    words = "an algorithm of your own, or of the package, beside the published ones; may be given several times"
    again.add_argument("--with", metavar="MODULE:FACTORY", dest="own", action="append", default=[], help=words)
    words = "full size: minutes to hours; without it a small one, seconds to minutes"
    again.add_argument("--full", action="store_true", help=words)
    again.add_argument("--out", metavar="DIR", type=_path, help="where to write (default: runs/<PAPER>/<FIGURE>)")
    again.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")
    again.add_argument("--quiet", action="store_true", help="no estimates and no progress bars")
    listing = commands.add_parser("list", help="list what is there, or what one of them takes")
    kinds = "algorithms, environments, adversaries, papers, or the name of one of them"
    listing.add_argument("what", metavar="WHAT", nargs="?", help=kinds)
    listing.add_argument("--json", action="store_true", help="machine-readable")
    listing.add_argument("--plays", action="store_true", help="which algorithm plays in which environment")
    drawing = commands.add_parser("plot", help="draw the pictures of a finished run again")
    drawing.add_argument("directory", metavar="DIR", type=_path)
    drawing.add_argument("--out", metavar="PLACE", type=_path, help="where to write them (default: DIR)")
    drawing.add_argument("--format", default="png", metavar="png,pdf")
    drawing.add_argument("--against", metavar="KEY", help="grid key on the horizontal axis")
    drawing.add_argument("--reward", action="store_true", help="also the expected reward against plays")
    reporting = commands.add_parser("report", help="write one HTML page about finished runs, side by side")
    reporting.add_argument("directories", metavar="DIR", type=_path, nargs="+", help="of a finished run")
    default = "DIR/report.html, of several DIR report.html"
    reporting.add_argument("--out", metavar="FILE", type=_path, help=f"where to write (default: {default})")
    auditing = commands.add_parser("audit", help="prove how much of a claimed privacy budget is spent")
    words = "an algorithm, at the catalogue's size, your own as MODULE:FACTORY, or all of a sweep in FILE.toml"
    auditing.add_argument("name", metavar="NAME", nargs="?", help=words)
    auditing.add_argument("--all", action="store_true", help="every private algorithm of the catalogue")
    auditing.add_argument("--whole", action="store_true", help="look at whole runs, not at their beginning alone")
    auditing.add_argument(
        "--horizon", metavar="T", type=int, help="plays of a run (default: the catalogue's, 256 for your own)"
    )
    auditing.add_argument("--adaptive", action="store_true", help="inputs react to the arms that were played")
    words = "independent runs each (default: 1000000; 60000 of other people's learners)"
    auditing.add_argument("--runs", metavar="N", type=int, help=words)
    auditing.add_argument("--confidence", type=float, default=0.95, help="of each lower bound (default: 0.95)")
    auditing.add_argument("--seed", type=int, default=0)
    auditing.add_argument("--out", metavar="DIR", type=_path, help="where to write (default: runs/audit)")
    auditing.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")
    theirs = auditing.add_argument_group("other people's learners", "MODULE:CLASS makes one, or is jb.foreign(...)")
    words = "what it claims to spend; it says that NAME is someone else's learner"
    theirs.add_argument("--epsilon", metavar="E", type=float, help=words)
    theirs.add_argument("--delta", metavar="D", type=float, help="of its claim (default: 0)")
    words = "what neighbours differ in (default: reward)"
    theirs.add_argument("--unit", choices=["reward", "user", "loss_vector"], help=words)
    theirs.add_argument("--model", choices=["central", "local"], help="who is trusted (default: central)")
    words = "view(learner, arm, reward): numbers that are seen after a play, besides arms"
    theirs.add_argument("--view", metavar="MODULE:FUNCTION", help=words)
    words = "a name of the package, which shows contexts (default: two arms)"
    theirs.add_argument("--environment", metavar="NAME", help=words)
    checking = commands.add_parser("check", help="say what breaks the contract of an algorithm of your own")
    words = "where it can be imported; or a name of the package"
    checking.add_argument("algorithm", metavar="MODULE:FACTORY", help=words)
    words = "a name of the package, or MODULE:FACTORY (default: one that fits)"
    checking.add_argument("--environment", metavar="NAME", help=words)
    checking.add_argument("--audit", action="store_true", help="also audit a private algorithm's claim")
    for each in (auditing, checking):
        words = "an argument of the algorithm, such as epsilon=1; may be given several times"
        each.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=words)
    caching = commands.add_parser("cache", help="say what is kept of compiled programs, or delete it")
    caching.add_argument("what", choices=["info", "clear"], help="what is kept, or delete it")
    starting = commands.add_parser("new", help="write an algorithm of your own to start from, with all around it")
    starting.add_argument("name", metavar="NAME", help="of the algorithm, such as my_algorithm")
    starting.add_argument("--out", metavar="DIR", type=_path, default=Path(), help="where to write (default: here)")
    words = "with a guarantee: noise at every client (local), or on sums at the server (central)"
    starting.add_argument("--private", choices=["local", "central"], help=words)
    words = "what it plays on: arms alone (default), or features of each arm that change from play to play"
    starting.add_argument("--on", choices=["arms", "contexts"], default="arms", help=words)
    starting.add_argument("--wing", metavar="WING", help="write it into a checkout of the package, with its test")
    completing = commands.add_parser("completion", help="print what completes these commands in a shell")
    completing.add_argument("shell", choices=["bash", "zsh", "fish"], help="your shell")
    top.set_defaults(engine="local", parser=top)
    for name, command in [("", top), *commands.choices.items()]:
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        examples = [line for line in EXAMPLES if line.split()[1] == name] if name else FIRST_EXAMPLES
        command.epilog = "\n  ".join(["examples:", *examples])
    return top


def main(arguments=None) -> int:
    """Entry point; returns the exit code."""
    _open_streams()
    os.environ["MPLBACKEND"] = "agg"  # pictures are files: the backend of a notebook or a desktop may not be here
    with contextlib.ExitStack() as after:
        _printable(after)
        return _main(parser().parse_args(arguments))


def _main(given: argparse.Namespace) -> int:
    try:
        with contextlib.ExitStack() as after:
            if threading.current_thread() is threading.main_thread():
                # a scheduler's SIGTERM is a Ctrl-C: finished chunks are kept and calls on their way are saved
                before = signal.signal(signal.SIGTERM, signal.default_int_handler)
                after.callback(signal.signal, signal.SIGTERM, before)
            # a warning is one line of its own words, without the line of the package that gave it
            after.callback(setattr, warnings, "formatwarning", warnings.formatwarning)
            warnings.formatwarning = lambda message, *_: f"jaxbandits: {' '.join(str(message).split())}\n"
            if "format" in given:
                given.formats = formats(given.format)
            if "file" in given and given.out is None:
                from jaxbandits.sweeps.toml_file import is_passing

                if is_passing(given.file):
                    raise ValueError(f"FILE = {given.file}: a pipe names no directory: give --out DIR")
                given.out = Path("runs") / (given.file.stem + ("-tune" if given.command == "tune" else ""))
            if given.command is None:
                given.parser.print_help()
                return 0
            here = {
                "run": run, "worker": worker, "reproduce": reproduce, "list": listing, "plot": draw, "report": report,
            }  # fmt: skip
            command = here.get(given.command) or import_module(f"jaxbandits.commands.{given.command}").run
            return command(given)
    except KeyboardInterrupt:
        if given.command in ("run", "worker", "tune", "reproduce"):
            again = _command(given, given.command)
            print(f"interrupted; everything finished is kept. Go on with: {again}", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except (ValueError, TypeError, OSError, RuntimeError, Warning) as error:  # warnings may be errors
        print(f"jaxbandits: {' '.join(str(error).split())}", file=sys.stderr)
        # a fault that showed while playing is not bad input
        from jaxbandits.contract import ContractError

        bad = isinstance(error, ValueError | TypeError) and not isinstance(error, ContractError)
        return EXIT_BAD_INPUT if bad else EXIT_FAILED


def _open_streams() -> None:
    """Where a process begins with closed streams, the next files that it opens would be taken for them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            if opened == number and getattr(sys, name) is None:
                setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


_ASCII_SIGNS = {"±": "+-", "×": "x", "≤": "<=", "≥": ">=", "–": "-", "…": "..."}


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """What stands for signs that a stream does not have, such as those of our tables where it is in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_ASCII_SIGNS.get(x, x.encode("ascii", "backslashreplace").decode()) for x in signs), error.end


def _printable(after: contextlib.ExitStack) -> None:
    """No character ends a finished run: what a stream cannot write is replaced, unless its user said how."""

    def back(stream: io.TextIOWrapper, errors: str) -> None:
        if not stream.closed:
            stream.reconfigure(errors=errors)

    codecs.register_error("jaxbandits", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            after.callback(back, stream, stream.errors)
            stream.reconfigure(errors="jaxbandits")


def formats(text: str) -> tuple[str, ...]:
    """png,pdf -> ("png", "pdf")."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    bad = [part for part in found if part not in ("png", "pdf", "svg")]
    if bad or not found:
        raise ValueError(f"--format {text}: give png, pdf or svg, separated by commas")
    return found


def run(given) -> int:
    """`jaxbandits run FILE`: compute what is missing in DIR, then write results, tables and pictures."""
    job, figure, caption = _job(given, fresh=given.fresh)
    from jaxbandits import statistics
    from jaxbandits.reports import output

    if given.fresh:
        output.clear_outputs(job.sweep.directory)
    ds = job.dataset()
    done, sweep, store = job.summary, job.sweep, job.sweep.store
    if store.locked:
        print(f"{sweep.directory} holds this run, finished, and cannot be written: nothing computed, nothing written")
        print(statistics.table(ds))
        return 0
    picture = {"formats": given.formats, "figure": figure, "caption": caption}
    if job.computed or not output.describes(sweep.directory, sweep.config, ds):
        output.write_run(ds, sweep.directory, seconds=store.seconds, lanes=sweep.lanes, **picture)
        seconds = store.spent or time.perf_counter() - store.began
        print(f"{done} in {seconds:.1f} s, compilation included")
    else:
        output.draw(ds, sweep.directory, **picture)
        print(f"{sweep.directory} already holds this run: {done}")
    print(statistics.table(ds))
    if "decisions" in ds.attrs:
        print(statistics.decisions(ds).to_string(index=False))
    names = sorted(p.name for p in sweep.directory.iterdir() if not p.name.startswith("."))
    print(f"written to {sweep.directory}: {', '.join(names)}")
    if job.replaced:
        print(job.replaced)
    return 0


def worker(given) -> int:
    """`jaxbandits worker FILE --shard i/n`: compute one share of a sweep into DIR, for job arrays."""
    match = re.fullmatch(r"(\d+)/(\d+)", given.shard)
    if not match or not 0 <= int(match[1]) <= int(match[2]) or int(match[2]) < 1:
        raise ValueError(f"--shard {given.shard}: give i/n with i from 0 to n - 1, or from 1 to n")
    shard = (int(match[1]) % int(match[2]), int(match[2]))  # counted from 0 or from 1: n/n is 0/n
    job, _, _ = _job(given)
    job.compute(shard)
    done = "is in" if job.computed else "had nothing to compute in"
    print(f"shard {given.shard} {done} {job.sweep.directory}; when all are through: {_command(given, 'run')}")
    return 0


def _job(given, fresh: bool = False):
    """The sweep of a file, checked and not yet run; what its picture should show; its caption."""
    import numpy as np

    from jaxbandits.regret import has_best
    from jaxbandits.selection import PICTURED
    from jaxbandits.sweeps.dataset import coordinate_values
    from jaxbandits.sweeps.execution import SweepRun
    from jaxbandits.sweeps.sweep import prepare_sweep
    from jaxbandits.sweeps.toml_file import (
        config_arguments,
        config_for_directory,
        name_file_in_errors,
        parse_toml,
        read_file,
    )

    content = read_file(given.file)
    settings = config_arguments(parse_toml(given.file, content), given.file)
    figure, caption = settings.pop("figure", None), settings.pop("caption", "")
    if given.seeds is not None:
        settings["seeds"] = given.seeds
    _check_figure(figure, settings)
    rest = {key: x for key, x in settings.items() if key not in ("algorithms", "environment", "memory")}
    with name_file_in_errors(given.file, settings):
        checked = prepare_sweep(
            settings["algorithms"], settings["environment"], rest, memory=settings.get("memory"), store=given.out,
            engine=given.engine, progress=not given.quiet, fresh=fresh,
        )  # fmt: skip
    if (figure or {}).get("reward") and not all(has_best(cell.environment) for cell in checked.plan.cells):
        why = "contexts decide which arm is best in this environment, so that only regret is known"
        raise ValueError(f"{given.file}: figure.reward: {why}: leave it out")
    for axis in checked.plan.axes:
        if axis.name in PICTURED:
            remedy = f"write the algorithm's label before it, LABEL.{axis.name}"
            raise ValueError(f"{given.file}: grid key {axis.name!r} is a column of the data of pictures: {remedy}")
        numbers = coordinate_values(axis.labels)
        usable = numbers.dtype.kind in "if" and np.isfinite(numbers).any()
        if axis.name == (figure or {}).get("against") and not usable:
            why = f"needs numbers, and the values are {', '.join(map(str, numbers))}: leave it out"
            raise ValueError(f"{given.file}: figure.against = {axis.name!r} {why}")
    job = SweepRun(checked)
    if given.command == "run":
        job.config_file = config_for_directory(given.file, content, given.out, given.seeds)
    return job, figure, caption


def _command(given, command: str) -> str:
    """The command line that goes on with this run."""
    if command == "reproduce":
        words, options = [given.name, *(["--full"] if given.full else [])], ["out", "format"]
        words += [word for own in given.own for word in ("--with", own)]
    else:
        of_worker, again = ["shard"] if command == "worker" else [], given.file
        if given.out is not None:  # else it was interrupted before anything was read
            from jaxbandits.sweeps.toml_file import is_passing

            ours = command == given.command == "run" and not (given.out / "results.nc").exists()
            kept = given.out / "config.toml" if ours else Path("FILE")  # that of an earlier result is its own
            again = kept if is_passing(given.file) else given.file
        words, options = [str(again)], ["out", *of_worker, "seeds", "engine", "format"]
    for option in options:
        value = getattr(given, option, None)
        if value not in (None, "png", "local"):  # the defaults
            words += [f"--{option}", str(value)]
    return shlex.join(["jaxbandits", command, *words])


def _check_figure(figure, settings: dict) -> None:
    """What the picture asks for is there: said before anything runs."""
    from jaxbandits.formatting import nearest

    axes = [key[0] if isinstance(key, tuple) else key for key in settings.get("grid") or {}]
    axes += ["horizon"] if isinstance(settings["horizon"], list) else []
    key = (figure or {}).get("against")
    if key is not None and key not in axes:
        lacks = f"is no axis of this run{nearest(key, axes)}"
        raise ValueError(f"figure.against = {key!r} {lacks}: it has {', '.join(axes)}")
    labels = list(settings["algorithms"])
    dotted = (figure or {}).get("dotted", ())
    for label in [*dotted, *(dotted.values() if isinstance(dotted, dict) else ())]:
        if label not in labels:
            wrong = f"{label!r}{nearest(label, labels)}"
            raise ValueError(f"figure.dotted names {wrong}: the algorithms are {', '.join(labels)}")
    if dotted:
        from jaxbandits.reports.drawing import styles_of
        from jaxbandits.validation import prefix_errors

        with prefix_errors("figure"):
            styles_of(labels, dotted)


def reproduce(given) -> int:
    """`jaxbandits reproduce PAPER/FIGURE`: compute what is missing, write figures, data and the table of claims.

    Below the table stand the papers' numbered claims that its lines are about, with their words, and warnings, once.
    Algorithms of `--with` have a table of their own, and pictures, in a directory beside those of the study.
    """
    from jaxbandits import papers
    from jaxbandits.papers.verdicts import list_claims, word_finder

    studies = papers.find(given.name)
    entries, refusals = papers.enter_own(given.own, studies, given.full) if given.own else ({}, [])
    for refusal in refusals:
        print(f"jaxbandits: {refusal}", file=sys.stderr)
    for name in entries or studies:
        study, home = studies[name], _study_directory(given, name, studies)
        print(f"{name}: {study.title} ({study.source})", flush=True)
        began = time.perf_counter()
        more = {"full": given.full, "formats": given.formats, "progress": not given.quiet}
        with warnings.catch_warnings(record=True) as caught:
            beside = papers.reproduce_beside(study, home, entries[name], **more) if entries else None
            done = beside.published if beside else papers.reproduce(study, home, **more)
        table = papers.claims_table(done.claims, word_finder(name, words=False), judged=given.full)
        print(f"{table}\n\n{list_claims(name, (claim.statement for claim in done.claims))}".rstrip(), flush=True)
        paths = done.paths
        if beside:
            print(f"\n{beside.table}", flush=True)
            paths = beside.paths
            if beside.without:
                print(f"with lines of the paper's alone, and not drawn again: {', '.join(beside.without)}")
        for message in dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught):
            print(f"jaxbandits: {message}", file=sys.stderr)
        written = sorted({path.name for path in paths})
        print(f"{time.perf_counter() - began:.1f} s; written to {paths[-1].parent}: {', '.join(written)}")
        if not given.full:
            quick = "This was the quick size, too small for the paper's claims"
            print(f"{quick}: --full runs the sizes of the documentation.")
    return 0


def _study_directory(given, name: str, studies) -> Path:
    """Where a study is written: the directory that was given if it is the only one, else one of its own in it."""
    if not given.out:
        return Path("runs") / name
    if len(studies) == 1:
        return given.out
    return given.out / (name if len({other.split("/")[0] for other in studies}) > 1 else name.split("/")[1])


def listing(given) -> int:
    """`jaxbandits list [WHAT]`: names and what they are, or all about one of them, or who plays where."""
    from jaxbandits.commands import listing

    if given.plays:
        if given.what or given.json:
            raise ValueError("--plays is a table of everything: give it alone, or ask jb.plays(algorithm, environment)")
        print(listing.plays_text())
        return 0
    print(listing.as_json(given.what) if given.json else listing.listing_text(given.what))
    return 0


def draw(given) -> int:
    """`jaxbandits plot DIR`."""
    from jaxbandits.reports import output
    from jaxbandits.sweeps import load
    from jaxbandits.sweeps.toml_file import parse_toml

    ds = load(given.directory)
    kept = output.config_of(given.directory, json.loads(ds.attrs.get("config", "{}")))
    settings = parse_toml(kept) if kept else {}
    figure = dict(settings.get("figure", {}))
    if given.against:
        if given.against not in ds.regret.dims:
            raise ValueError(f"--against {given.against}: the run has no such axis; it has {', '.join(ds.regret.dims)}")
        figure["against"] = given.against
    if given.reward:
        figure["reward"] = True
    place = given.out or given.directory
    if given.out:
        place.mkdir(parents=True, exist_ok=True)
    if not os.access(place, os.W_OK):
        raise OSError(f"{place} cannot be written: give another place for the pictures with --out")
    paths = output.draw(ds, place, formats=given.formats, figure=figure, caption=settings.get("caption", ""))
    print("\n".join(str(p) for p in paths))
    return 0


def report(given) -> int:
    """`jaxbandits report DIR [DIR ...]`."""
    from jaxbandits.reports.page import report as write

    alone = len(given.directories) == 1 and given.directories[0].is_dir()
    path = write(given.directories, given.out or (given.directories[0] if alone else Path()) / "report.html")
    print(f"written to {path}: {path.stat().st_size / 1000:,.0f} kB, to be opened in a browser")
    return 0
