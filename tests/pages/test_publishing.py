"""Publishing: workflows and forms that can be known to work without a runner, `make publish`, and a release's files."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from jaxbandits import cli

pytestmark = pytest.mark.pages
ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
scripts = (runpy.run_path(str(GITHUB / f"{name}.py"), run_name=name) for name in ("publish", "release"))
publish, release = (SimpleNamespace(**script) for script in scripts)
SCHEMAS = {
    "github-workflows": sorted((GITHUB / "workflows").glob("*.yml")),
    "github-issue-forms": [p for p in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if p.stem != "config"],
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE/config.yml"],
    "readthedocs": [ROOT / ".readthedocs.yaml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}
REPOSITORY, DOCUMENTATION = "https://github.com/Some-One/bandits", "https://some-one.github.io/bandits/"
VERSION = "9.9.0"
AUTHORS = "Ada K. Lovelace <ada@example.org>; Emmy Noether; Plato"


def complaints(schema: str, paths: list[Path]) -> str:
    """What a schema says of files; empty where it says nothing."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, paths)]
    checked = subprocess.run(command, capture_output=True, text=True)
    return "" if checked.returncode == 0 else checked.stdout + checked.stderr


def commands() -> list[str]:
    """The commands of every workflow's jobs."""
    jobs = [job for path in SCHEMAS["github-workflows"] for job in yaml.safe_load(path.read_text())["jobs"].values()]
    return [re.sub(r"\s+#.*", "", step["run"]) for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_are_what_their_schema_asks(schema):
    assert SCHEMAS[schema] and complaints(schema, SCHEMAS[schema]) == ""


def test_a_step_that_is_none_is_found(tmp_path):
    (tmp_path / "ci.yml").write_text((GITHUB / "workflows/ci.yml").read_text().replace("- run: make test", "- runs: x"))
    assert "runs" in complaints("github-workflows", [tmp_path / "ci.yml"])


def test_commands_of_workflows_work_here(tmp_path, monkeypatch, capsys):
    """Those of `make` are targets that `.ci/run`, tests of pages or the test of a release run; all others run here."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    lines = commands()
    made = {line.split()[1] for line in lines if line.startswith("make ")}
    assert made == {"test", "pages", "docs", "dist", "test-matrix"} <= {*targets}
    others = [line for line in lines if not line.startswith(("make ", "jaxbandits "))]
    assert others == ["python -m pip install .", "rm dist/*.zip"]  # the first one as in tests/wheel.sh
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        if line.startswith("jaxbandits "):
            assert cli.main(line.split()[1:]) == 0, capsys.readouterr()
    assert (tmp_path / "out/report.html").exists()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The files of this checkout, as `make publish` leaves them."""
    root = tmp_path_factory.mktemp("published")
    named = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in named.stdout.splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    said = publish.publish(root, f"{REPOSITORY}.git", AUTHORS)
    assert f"git push {REPOSITORY} main" in said and "Some-One/bandits, workflow release.yml" in said
    return root


def test_every_address_is_written(copy):
    project = tomllib.loads((copy / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Repository"] == REPOSITORY and project["urls"]["Documentation"] == DOCUMENTATION
    assert project["authors"] == [
        {"name": "Ada K. Lovelace", "email": "ada@example.org"}, {"name": "Emmy Noether"}, {"name": "Plato"},
    ]  # fmt: skip
    cited = yaml.safe_load((copy / "CITATION.cff").read_text())
    assert cited["repository-code"] == REPOSITORY and cited["url"] == DOCUMENTATION
    assert [one["family-names"] for one in cited["authors"]] == ["Lovelace", "Noether", "Plato"]
    assert cited["references"] == yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert complaints("citation-file-format", [copy / "CITATION.cff"]) == ""
    for path in sorted((copy / "notebooks").glob("*.ipynb")):
        first, *others = json.loads(path.read_text())["cells"]
        assert f'REPOSITORY = "{REPOSITORY}"' in "".join(first["source"])
        assert others == json.loads((ROOT / "notebooks" / path.name).read_text())["cells"][1:]


def test_pages_of_a_published_copy_pass(copy):
    """What forbids an address that nobody set takes one that is set."""
    chosen = "addresses or address or kept or citation or linked"
    paths = [f"tests/pages/test_{name}.py" for name in ("blocks", "notebooks", "citations")]
    command = [sys.executable, "-m", "pytest", "-q", *paths, "-k", chosen]
    ran = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert ran.returncode == 0 and re.search(r"\b[1-9]\d* passed", ran.stdout), ran.stdout[-3000:]


def test_published_again_with_other_words(copy, tmp_path):
    for name in ("pyproject.toml", "CITATION.cff", "README.md"):
        shutil.copy(copy / name, tmp_path)
    shutil.copytree(copy / "notebooks", tmp_path / "notebooks")
    publish.publish(tmp_path, REPOSITORY, AUTHORS)
    for name in ("pyproject.toml", "CITATION.cff", "README.md"):
        assert (tmp_path / name).read_text() == (copy / name).read_text()
    publish.publish(tmp_path, "https://github.com/else/where", "Plato")
    for name in ("pyproject.toml", "CITATION.cff", "README.md", "notebooks/quickstart.ipynb"):
        assert "Some-One" not in (tmp_path / name).read_text() and "else/where" in (tmp_path / name).read_text()
    assert "git clone https://github.com/else/where && cd where\n" in (tmp_path / "README.md").read_text()


@pytest.fixture(scope="module")
def released(copy, tmp_path_factory):
    """A repository of its own, in which a release was made."""
    root = shutil.copytree(copy, tmp_path_factory.mktemp("released"), dirs_exist_ok=True)
    page = root / "docs/changelog.md"
    page.write_text(page.read_text().replace("\n## ", f"\n## {VERSION}\n\nNews.\n\n## ", 1))
    for words in (["init", "-q"], ["add", "--all"], ["commit", "-qm", "Before"]):
        git(root, *words)
    subprocess.run([sys.executable, ".github/release.py", VERSION], cwd=root, check=True, capture_output=True)
    return root


def git(root: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def test_a_release_has_a_version_a_commit_and_a_tag(released):
    assert git(released, "log", "-1", "--format=%s") == f"Release {VERSION}"
    assert "News." in git(released, "tag", "-n9", f"v{VERSION}") and git(released, "status", "--porcelain") == ""
    assert f'__version__ = "{VERSION}"' in (released / "jaxbandits/version.py").read_text()
    assert f"version: {VERSION}\ndate-released: " in (released / "CITATION.cff").read_text()


def test_an_index_takes_the_files(released):
    """Every link of the README is absolute there, and the files are small."""
    names = [f"jaxbandits-{VERSION}{end}" for end in ("-notebooks.zip", "-py3-none-any.whl", ".tar.gz")]
    files = sorted((released / "dist").iterdir())
    assert [path.name for path in files] == names and max(path.stat().st_size for path in files) < 5e6
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files[1:])]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    with zipfile.ZipFile(files[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        about = wheel.read(name).decode()
    links = re.findall(r"\]\(([^)]+)\)", about.split("\n\n", 1)[1])
    assert len(links) > 20 and all(link.startswith(("https://", "#")) for link in links)
    assert f"{REPOSITORY}/raw/main/docs/figures/landing-trust.png" in links
    assert f"{REPOSITORY}/blob/main/docs/start.md" in links
    with tarfile.open(files[2]) as sources:
        assert not [name for name in sources.getnames() if "/docs/figures/" in name]
    with zipfile.ZipFile(files[0]) as notebooks:
        assert {names[1], "quickstart.ipynb"} <= set(notebooks.namelist())


def test_wrong_words_change_nothing(tmp_path):
    for repository, authors, said in (
        ("", "Ada Lovelace", "REPOSITORY = ''"),
        ("github.com/a/b", "Ada Lovelace", "https://github.com/OWNER/NAME"),
        (REPOSITORY, "", "AUTHORS is empty"),
        (REPOSITORY, "Ada Lovelace <ada>", "'Ada Lovelace <ada>'"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            publish.publish(tmp_path, repository, authors)  # where there is nothing to write


def test_what_a_release_asks_for():
    changelog = "# Changelog\n\n## 1.2.0\n\nWords.\n\n## 1.1.0\n\nOlder.\n"
    assert release.newest_entry(changelog) == ("1.2.0", "Words.")
    assert release.problem("1.2.0", changelog, ["v1.1.0"], "") == ""
    assert "three numbers" in release.problem("1.2", changelog, [], "")
    assert "has a tag" in release.problem("1.2.0", changelog, ["v1.2.0"], "")
    assert "'## 1.3.0'" in release.problem("1.3.0", changelog, [], "")
    assert "README.md" in release.problem("1.2.0", changelog, [], " M README.md")
    cited = release.dated("version: 1.1.0\nlicense: x\n", "1.2.0", "2026-01-02")
    assert cited == "version: 1.2.0\ndate-released: '2026-01-02'\nlicense: x\n"
    assert release.dated(cited, "1.2.0", "2026-01-02") == cited
