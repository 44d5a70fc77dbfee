"""Make a release: version, date, the README's table of algorithms, a commit, a tag with the changelog's words, files.

    make release VERSION=0.3.0     needs a clean checkout of main, and a section "## 0.3.0" on top of docs/changelog.md
    make dist                      only the files: sdist, wheel, and the notebooks with the wheel beside them

Nothing leaves this machine: `git push --follow-tags` does that, and the workflow of the tag uploads.
"""

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def newest_entry(changelog: str) -> tuple[str, str]:
    """The version on top of a changelog, and what is said of it."""
    found = re.search(r"^## (\S+)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return ("", "") if found is None else (found[1], found[2].strip())


def problem(version: str, changelog: str, tags: list[str], changed: str) -> str:
    """Why a release cannot be made; empty where it can."""
    top, words = newest_entry(changelog)
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        return f"VERSION = {version!r}: give three numbers, such as 0.3.0, or a candidate, such as 0.3.0rc1"
    if f"v{version}" in tags:
        return f"VERSION = {version!r} has a tag already: give the next one"
    if top != version or not words:
        return f"docs/changelog.md begins with {top!r}: write a section '## {version}' on top of it first"
    if changed:
        return f"the checkout has changes: commit them first\n{changed}"
    return ""


def dated(citation: str, version: str, day: str) -> str:
    """CITATION.cff of a release."""
    citation = re.sub(r"^date-released: .*\n", "", citation, flags=re.MULTILINE)
    return re.sub(r"^version: .*$", f"version: {version}\ndate-released: '{day}'", citation, flags=re.MULTILINE)


def build() -> list[Path]:
    """The files of a release in dist/."""
    folder = ROOT / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(folder / f"{wheel.name.split('-py3')[0]}-notebooks.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path in [wheel, *sorted((ROOT / "notebooks").glob("*.ipynb"))]:
            file.write(path, path.name)
    return sorted(folder.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", help="without one: only the files")
    version = parser.parse_args().version
    if version is not None:
        changelog = (ROOT / "docs/changelog.md").read_text(encoding="utf-8")
        if reason := problem(version, changelog, git("tag").split(), git("status", "--porcelain")):
            sys.exit(reason)
        place, citation = ROOT / "jaxbandits/version.py", ROOT / "CITATION.cff"
        place.write_text(re.sub(r'(__version__ = )".*"', rf'\1"{version}"', place.read_text()))
        subprocess.run([sys.executable, "docs/_ext/algorithm_catalogue.py"], cwd=ROOT, check=True)
        citation.write_text(dated(citation.read_text(), version, datetime.date.today().isoformat()))
        git("commit", "--all", "--message", f"Release {version}")
        git("tag", "--annotate", f"v{version}", "--message", f"jaxbandits {version}\n\n{newest_entry(changelog)[1]}")
    for path in build():
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    if version is not None:
        print("git push --follow-tags: the workflow of the tag uploads it")


if __name__ == "__main__":
    main()
