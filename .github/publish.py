"""Write the project's address and its authors wherever they belong, and say what is left to do by hand.

    make publish REPOSITORY=https://github.com/OWNER/NAME AUTHORS="Ada Lovelace <ada@example.org>; Emmy Noether"

`[project.urls]` of pyproject.toml is the one place of the address: the site and the notebooks read it there.
CITATION.cff, the README and its form for a package index cannot, so they are written here. Run again with other words,
it replaces the first ones.
"""

import argparse
import re
import runpy
import sys
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit

ROOT = Path(__file__).resolve().parents[1]
BADGES = re.compile(r"<!-- badges: begin -->\n.*?<!-- badges: end -->\n\n", re.DOTALL)
# Links to files of the repository, of pictures and of pages; an index shows the README without them beside it.
RELATIVE = r"\]\((?![a-z]+:|#)"
FORM = "write names as 'Given Family <email>', with semicolons between"
CLICKS = """
What is left, in this order:
 1. git push {repository} main, and there under Settings:
    Pages: the source is "GitHub Actions". Environments: one named "pypi". Security: private vulnerability reporting.
 2. On the package index, a trusted publisher for the project "jaxbandits": {owner}/{name}, workflow release.yml,
    environment pypi.
 3. make release VERSION=..., and git push --follow-tags: the workflow builds, attests and uploads.
"""


class Author(NamedTuple):
    given: str
    family: str
    email: str


def author(text: str) -> Author:
    """An author from `Given Names Family <email>`; the email may be left out."""
    form = r"(?:(?P<given>[^<>]+?)\s+)?(?P<family>[^\s<>]+)\s*(?:<(?P<email>[^<>\s]+@[^<>\s]+)>)?"
    found = re.fullmatch(form, text.strip())
    if found is None:
        raise ValueError(f"AUTHORS has {text.strip()!r}: {FORM}")
    return Author(found["given"] or "", found["family"], found["email"] or "")


def addresses(repository: str) -> dict[str, str]:
    """The addresses that follow from the repository's."""
    found = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    if found is None:
        raise ValueError(f"REPOSITORY = {repository!r} is no address of a repository: https://github.com/OWNER/NAME")
    home = f"https://github.com/{found[1]}/{found[2]}"
    return {
        "Documentation": f"https://{found[1].lower()}.github.io/{found[2]}/",
        "Repository": home,
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/main/docs/changelog.md",
    }


def colab(repository: str) -> str:
    """Where Colab opens the repository's notebooks."""
    return repository.replace("github.com", "colab.research.google.com/github") + "/blob/main/notebooks/"


def pyproject(text: str, urls: dict[str, str], authors: list[Author]) -> str:
    """pyproject.toml with addresses and authors, and the README's links made absolute for an index."""
    file: Any = tomlkit.parse(text)
    project, named = file["project"], tomlkit.array()
    for one in authors:
        entry = tomlkit.inline_table()
        entry.update({"name": f"{one.given} {one.family}".strip()} | ({"email": one.email} if one.email else {}))
        named.append(entry)
    project["authors"] = named
    for name, address in urls.items():
        project["urls"][name] = address
    substitutions = tomlkit.aot()
    for pattern, place in [(rf"(!\[[^\]]*{RELATIVE})", "raw"), (rf"({RELATIVE})", "blob")]:
        substitutions.append(
            tomlkit.item({"pattern": pattern, "replacement": rf"\1{urls['Repository']}/{place}/main/"})
        )
    file["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"] = substitutions
    return tomlkit.dumps(file)


def citation(text: str, urls: dict[str, str], authors: list[Author]) -> str:
    """CITATION.cff with authors and addresses."""
    people = [
        f"  - family-names: {one.family!r}\n" + (f"    given-names: {one.given!r}\n" if one.given else "")
        for one in authors
    ]
    text = re.sub(r"^authors:\n(?:  .*\n)+", lambda _: "authors:\n" + "".join(people), text, flags=re.MULTILINE)
    text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
    lines = f"repository-code: {urls['Repository']!r}\nurl: {urls['Documentation']!r}\n"
    return re.sub(r"^abstract:", lambda _: f"{lines}abstract:", text, flags=re.MULTILINE)


def readme(text: str, urls: dict[str, str]) -> str:
    """The README with a line of addresses below its title, and what is cloned."""
    home = urls["Repository"]
    badge = f"[![tests]({home}/actions/workflows/ci.yml/badge.svg)]({home}/actions/workflows/ci.yml)"
    links = f"[documentation]({urls['Documentation']}) · [quickstart in Colab]({colab(home)}quickstart.ipynb)"
    install = f"`pip install git+{home}`"
    text = re.sub(r"git clone \S+ && cd \S+.*", f"git clone {home} && cd {home.rsplit('/', 1)[1]}", text)
    title, rest = BADGES.sub("", text).split("\n\n", 1)
    return f"{title}\n\n<!-- badges: begin -->\n{badge} · {links} · {install}\n<!-- badges: end -->\n\n{rest}"


def publish(root: Path, repository: str, authors: str) -> str:
    """Write everything into a checkout; what is left to do, as text."""
    urls, people = addresses(repository), [author(one) for one in authors.split(";") if one.strip()]
    if not people:
        raise ValueError(f"AUTHORS is empty: {FORM}")
    for name, write in [
        ("pyproject.toml", lambda text: pyproject(text, urls, people)),
        ("CITATION.cff", lambda text: citation(text, urls, people)),
        ("README.md", lambda text: readme(text, urls)),
    ]:
        path = root / name
        path.write_text(write(path.read_text(encoding="utf-8")), encoding="utf-8")
    runpy.run_path(str(root / "notebooks/refresh.py"))["write_first_cells"]()
    owner, name = urls["Repository"].rsplit("/", 2)[1:]
    return CLICKS.format(repository=urls["Repository"], owner=owner, name=name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", required=True)
    parser.add_argument("--authors", required=True)
    given = parser.parse_args()
    try:
        print(publish(ROOT, given.repository, given.authors))
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
