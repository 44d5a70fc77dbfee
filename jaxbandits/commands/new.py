"""`jaxbandits new NAME`: an algorithm of one's own to start from, with an environment, a TOML file and a test."""

import argparse
import importlib.util
import keyword
import re
import sys
from importlib import resources
from pathlib import Path
from string import Template

from jaxbandits import algorithms, environments

# template of this package -> the file that it becomes
FILES = {"algorithm": "{name}.py", "environment": "{name}_environment.py"}
FILES |= {"toml": "{name}.toml", "test": "test_{name}.py"}


def run(given: argparse.Namespace) -> int:
    """Write the files, and print what can be done with them."""
    if given.wing:
        paths = write_in_package(given.name, given.wing)
        print(f"written: {', '.join(map(str, paths))}")
        later = [f"jaxbandits check {given.name}", f"pytest {paths[1]}", "make quick"]
    else:
        paths = write_starter(given.name, given.out)
        print(f"written to {given.out.resolve()}: {', '.join(path.name for path in paths)}")
        check = f"jaxbandits check {given.name}:{given.name}"
        later = [check, f"jaxbandits run {given.name}.toml", f"pytest test_{given.name}.py"]
        later = later if given.out == Path() else [f"cd {given.out}", *later]
    for line in later:
        print(f"    {line}")
    return 0


def write_in_package(name: str, wing: str) -> list[Path]:
    """Write an algorithm of the package and its test; the two files. From a checkout's root.

    ValueError where this is no checkout with such a wing, and as in `write_starter`.
    """
    room = Path("jaxbandits/algorithms")
    wings = sorted(path.parent.name for path in room.glob("*/__init__.py"))
    if wing not in wings:
        there = f"it is one of {', '.join(wings)}" if wings else "this directory is no checkout of jaxbandits"
        raise ValueError(f"--wing = {wing!r}: {there}")
    paths = {"algorithm": room / wing / f"{name}.py", "test_of_package": Path("tests") / wing / f"test_{name}.py"}
    return _write_templates(name, paths, factory=name, run="", declared='(plays_on="arms")')


def write_starter(name: str, directory: Path) -> list[Path]:
    """Write an algorithm, an environment, a TOML file and a test into a directory; the paths written.

    Nothing is written where one of the files is there already.

    name: of the algorithm and its module. ValueError for one that Python, this package or another module has, and for
    files that are there already.

    >>> write_starter("UCB-2", Path("."))
    Traceback (most recent call last):
    ValueError: NAME = 'UCB-2' names a module: lower-case letters, digits and _, a letter first, such as ucb_2
    """
    paths = {template: directory / file.format(name=name) for template, file in FILES.items()}
    return _write_templates(name, paths, factory=f"{name}:{name}", run=f"    jaxbandits run {name}.toml\n", declared="")


def _write_templates(name: str, paths: dict[str, Path], **words: str) -> list[Path]:
    """Write templates with a name and other words filled in. ValueError for a bad name; nothing is written over."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or name.startswith("test_"):
        proposal = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").removeprefix("test_")
        proposal = proposal if re.match(r"[a-z]", proposal) and not keyword.iskeyword(proposal) else "my_algorithm"
        form = "lower-case letters, digits and _, a letter first"
        raise ValueError(f"NAME = {name!r} names a module: {form}, such as {proposal}")
    taken = [path.name for path in paths.values() if path.exists()]
    if taken:
        where = next(iter(paths.values())).parent.resolve()
        raise ValueError(f"{where} has {', '.join(taken)} already: give another NAME, or another --out DIR")
    if name in algorithms.__all__ or name in environments.__all__:
        raise ValueError(f"NAME = {name!r} is a part of the package: give another, such as my_{name}")
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise ValueError(f"NAME = {name!r} is a module that Python has already: give another, such as my_{name}")
    words |= {"name": name, "title": name.replace("_", " ")}
    for template, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = resources.files("jaxbandits.commands").joinpath("templates", f"{template}.txt").read_text("utf-8")
        path.write_text(Template(text).substitute(words), encoding="utf-8")
    return list(paths.values())
