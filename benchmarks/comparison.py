"""The table of what bandit libraries have, and whether every cell and sentence of it can be looked up.

    python benchmarks/comparison.py                                  the table
    python benchmarks/comparison.py --check [--source NAME=DIR ...]  look up every cell and sentence
    python benchmarks/comparison.py --write docs/comparison.md README.md

The rows are in docs/comparison.toml, which says how a cell is written. Our names are imported or are files; those of
another library are looked for in its package, where it is installed or where `--source` says that it lies, which may be
given several times (obp does not install on Python 3.11: unpack its source distribution; rlberry-research is a
repository). A library that is not here gets a line.
"""

import argparse
import importlib.util
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sweeps

ROOT = Path(__file__).resolve().parent.parent
# column -> (name and version that were read, package)
LIBRARIES = {
    "pymab": ("PyMAB 2.0.1", "pymab"),
    "smpybandits": ("SMPyBandits 0.9.7", "SMPyBandits"),
    "coba": ("coba 8.1.0", "coba"),
    "obp": ("obp 0.5.7", "obp"),
}
# those without a column
OTHERS = {
    "stonet2000": ("StoneT2000/jax-bandits (git)", "jaxbandits_of_stonet2000"),  # its own name is ours: `--source` only
    "probml": ("probml/bandits (git)", "bandits"),
    "gymnax": ("gymnax (git)", "gymnax"),
    "river": ("river 0.26.1", "river"),
    "rlberry_research": ("rlberry-research (git)", "rlberry_research"),
    "rlberry": ("rlberry 0.7.3", "rlberry"),
    "rlberry_scool": ("rlberry-scool 0.7.3", "rlberry_scool"),
    "banditlab": ("BanditLab 1.1.0", "mab_framework"),
    "mabwiser": ("MABWiser 2.7.4", "mabwiser"),
    "gobrec": ("GOBRec 1.0.8", "gobrec"),
}


class Cell(NamedTuple):
    """An answer, the places that show it, and a remark."""

    answer: str
    places: tuple[str, ...]
    remark: str


def cell(text: str) -> Cell:
    """A cell of the file."""
    head, _, remark = text.partition(" | ")
    answer, *places = head.split()
    if answer not in ("yes", "partly", "no") or (answer == "no") != (not places):
        raise ValueError(f"a cell is yes or partly with what shows it, or no: {text!r}")
    return Cell(answer, tuple(places), remark)


def rows(kind: str = "row") -> list[dict[str, Any]]:
    """The rows, or entries of another kind, as they stand in the file."""
    return tomllib.loads((ROOT / "docs" / "comparison.toml").read_text(encoding="utf-8"))[kind]


# ---- looking up


def unknown_of_ours(place: str) -> bool:
    """Whether a name is neither public in the package nor a file of the repository."""
    if "/" in place or place.endswith(".md"):
        return not (ROOT / place).is_file()
    import jaxbandits

    value: Any = jaxbandits
    for part in place.split("."):
        value = getattr(value, part, None)
    return value is None


@cache
def texts(folder: Path) -> dict[str, str]:
    """Every Python file of a package without its tests."""
    files = [file for file in folder.rglob("*.py") if "tests" not in file.parts]
    return {str(file.relative_to(folder)): file.read_text(encoding="utf-8", errors="ignore") for file in files}


def unknown_of_others(place: str, folder: Path) -> bool:
    """Whether a file of a package is not there, or does not have the words."""
    file, _, words = place.partition(":")
    if not (folder / file).is_file():
        return True
    pattern = r"[\s_]+".join(map(re.escape, words.split("_")))
    return not re.search(pattern, (folder / file).read_text(encoding="utf-8", errors="ignore"))


def wrong(row: dict[str, Any], folders: dict[str, Path]) -> list[str]:
    """What cannot be looked up in a row."""
    found = [f"{row['feature']}: ours: {place}" for place in cell(row["ours"]).places if unknown_of_ours(place)]
    for library, folder in folders.items():
        if library not in LIBRARIES:
            continue
        one, where = cell(row[library]), f"{row['feature']}: {LIBRARIES[library][0]}"
        found += [f"{where}: {place}" for place in one.places if unknown_of_others(place, folder)]
        if one.answer == "no" and "absent" in row and (folder / row["absent"]).exists():
            found.append(f"{where}: has {row['absent']}")
        elif one.answer == "no" and "absent" not in row:
            has = [file for file, text in texts(folder).items() if re.search(row["searched"], text, re.IGNORECASE)]
            found += [f"{where}: {row['searched']!r} is in {file}" for file in has]
    return found


def wrong_of_sentence(sentence: dict[str, Any], answers: dict[tuple[str, str], str]) -> list[str]:
    """What a sentence says that the table does not. answers: (row, library) -> answer."""
    return [
        f"{sentence['text'].split('.')[0]}: {feature}: {library} is {answers.get((feature, library))}, not {said}"
        for feature, cells in sentence["cells"].items()
        for library, said in cells.items()
        if answers.get((feature, library)) != said
    ]


def wrong_of_other(other: dict[str, Any], folder: Path) -> list[str]:
    """What cannot be looked up of a library without a column."""
    name = OTHERS[other["library"]][0]
    found = [f"{name}: {place}" for place in other.get("has", ()) if unknown_of_others(place, folder)]
    within = folder / other.get("within", "")
    if not texts(within):
        found.append(f"{name}: no Python files in {within}")
    has = [file for file, text in texts(within).items() if re.search(other["lacks"], text, re.IGNORECASE)]
    return found + [f"{name}: {other['lacks']!r} is in {file}" for file in has]


def answers() -> dict[tuple[str, str], str]:
    """(row, library) -> answer."""
    return {(row["feature"], name): cell(row[name]).answer for row in rows() for name in ("ours", *LIBRARIES)}


def folders(given: list[str]) -> dict[str, Path]:
    """Where the packages of the libraries lie that are here."""
    found = {name: Path(place) for name, _, place in (text.partition("=") for text in given)}
    for library, (name, package) in {**LIBRARIES, **OTHERS}.items():
        if library not in found:
            spec = importlib.util.find_spec(package)
            if spec is None or spec.origin is None:
                print(f"{name}: not here, not looked up")
            else:
                found[library] = Path(spec.origin).parent
    return found


# ---- tables


def shown(text: str) -> str:
    """A cell of the page: the answer, what shows it without its file, a remark."""
    one = cell(text)
    if one.answer == "no":
        return "no"
    names = [place.partition(":")[2] or place for place in one.places]
    names = [name.removeprefix("class_").removeprefix("def_").removeprefix("import_") for name in names]
    return f"{one.answer}: " + ", ".join(f"`{name}`" for name in names) + (f" ({one.remark})" if one.remark else "")


def table(chosen: list[dict[str, Any]]) -> str:
    """Every row with what shows it."""
    lines = [f"| | jaxbandits | {' | '.join(name for name, _ in LIBRARIES.values())} |", "|" + "---|" * 6]
    for row in chosen:
        lines.append(f"| {' | '.join([row['feature'], *(shown(row[name]) for name in ('ours', *LIBRARIES))])} |")
    return "\n".join(lines) + "\n"


def short_table(chosen: list[dict[str, Any]]) -> str:
    """The rows of the README, answers alone: what only this package has first, what it lacks last."""
    lines = [f"| | jaxbandits | {' | '.join(name for name, _ in LIBRARIES.values())} |", "|" + "---|" * 6]
    found = [[row["feature"], *(cell(row[name]).answer for name in ("ours", *LIBRARIES))] for row in chosen]
    short = [answers for row, answers in zip(chosen, found, strict=True) if row.get("readme")]
    lines += [f"| {' | '.join(row)} |" for row in sorted(short, key=lambda row: (row[1] == "no", -row.count("no")))]
    return "\n".join(lines) + "\n"


def sentences() -> str:
    """What stands above the table."""
    return f"In short: {' '.join(' '.join(one['text'].split()) for one in rows('sentence'))}\n"


def others() -> str:
    """The libraries without a column."""
    lines = [f"- **{OTHERS[one['library']][0]}** {' '.join(one['text'].split())}" for one in rows("other")]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], prog="comparison.py")
    parser.add_argument("--check", action="store_true", help="look up all; 1 where something is wrong")
    parser.add_argument(
        "--source", nargs="+", action="extend", default=[], metavar="NAME=DIR",
        help=f"where a package lies, of {', '.join([*LIBRARIES, *OTHERS])}; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--write", type=Path, nargs="+", default=[], metavar="PAGE", help="pages with the table's marks"
    )
    options = parser.parse_args(arguments)
    if options.check:
        here = folders(options.source)
        found = [line for row in rows() for line in wrong(row, here)]
        found += [line for one in rows("sentence") for line in wrong_of_sentence(one, answers())]
        known = [one for one in rows("other") if one["library"] in here]
        found += [line for one in known for line in wrong_of_other(one, here[one["library"]])]
        checked = f"{len(rows())} rows, {len(rows('sentence'))} sentences and {len(known)} other libraries"
        print("\n".join([*found, f"{checked}, looked up in {', '.join(['ours', *here])}: {len(found)} wrong"]))
        return int(bool(found))
    for page in options.write:
        made = {"comparison": table(rows()), "comparison-short": short_table(rows())}
        for name, text in (made | {"comparison-words": sentences(), "comparison-others": others()}).items():
            if f"<!-- {name}: begin -->\n" in page.read_text(encoding="utf-8"):
                sweeps.put_between(page, name, text)
    if not options.write:
        print(table(rows()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
