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
    if given.wing and (given.private or given.on != "arms"):
        remedy = "leave --private and --on out, or write it outside of the package"
        raise ValueError(f"--wing = {given.wing!r} writes an algorithm of arms with a literal transcription: {remedy}")
    if given.wing:
        paths = write_in_package(given.name, given.wing)
        print(f"written: {', '.join(map(str, paths))}")
        later = [f"jaxbandits check {given.name}", f"pytest {paths[1]}", "make quick"]
    else:
        paths = write_starter(given.name, given.out, on=given.on, private=given.private)
        print(f"written to {given.out.resolve()}: {', '.join(path.name for path in paths)}")
        check = f"jaxbandits check {given.name}:{given.name}{' --audit' if given.private else ''}"
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
    return _write_templates(name, paths, {"factory": name, "run": "", "declared": '(plays_on="arms")'})


def write_starter(name: str, directory: Path, *, on: str = "arms", private: str | None = None) -> list[Path]:
    """Write an algorithm, an environment, a TOML file and a test into a directory; the paths written.

    Nothing is written where one of the files is there already.

    name: of the algorithm and its module. on: "arms" or "contexts". private: "local" or "central", the model of a
    guarantee that it declares. ValueError for a name that Python, this package or another module has, and for
    files that are there already.

    >>> write_starter("UCB-2", Path("."))
    Traceback (most recent call last):
    ValueError: NAME = 'UCB-2' names a module: lower-case letters, digits and _, a letter first, such as ucb_2
    """
    paths = {template: directory / file.format(name=name) for template, file in FILES.items()}
    world = {"arms": "one_better_arm", "contexts": "first_feature"}[on]
    words = {"factory": f"{name}:{name}", "run": f"    jaxbandits run {name}.toml\n", "declared": "", "world": world}
    return _write_templates(name, paths, words, on=on, private=private)


def _write_templates(
    name: str, paths: dict[str, Path], words: dict[str, str], *, on: str = "arms", private: str | None = None
) -> list[Path]:
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
    of_variant = {on, private or "plain", "private" if private else "", "" if words["run"] else "wing"}
    words |= {"name": name, "title": name.replace("_", " ")}
    for template, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = resources.files("jaxbandits.commands").joinpath("templates", f"{template}.txt").read_text("utf-8")
        path.write_text(Template(choose_parts(text, of_variant)).substitute(words), encoding="utf-8")
    return list(paths.values())


def choose_parts(text: str, variant: set[str]) -> str:
    """A template's text for a variant: lines `@words|line`, and parts of a line `<<words|part>>`, stand where all hold.

    words: of the variant, or with ! before them, of others.

    >>> choose_parts("@arms|a\\n@!arms|b\\nc<<arms local|, d>>", {"arms", "plain"})
    'a\\nc'
    """

    def applies(words: str) -> bool:
        return all((word.lstrip("!") in variant) == (word[0] != "!") for word in words.split())

    lines = [re.match(r"(?:@([a-z !]+)\|)?(.*)", line) for line in text.split("\n")]
    kept = "\n".join(line[2] for line in lines if line and applies(line[1] or ""))
    return re.sub(r"<<([a-z !]+)\|(.*?)>>", lambda part: part[2] if applies(part[1]) else "", kept)
