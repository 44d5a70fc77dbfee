"""The notebooks: their first cell, what is kept in them, and that they run from an empty folder."""

import importlib.util
import json
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
NAMES = "byzantine_agents own_private_algorithm price_of_privacy quickstart robust_bandits scaling".split()
refresh = SimpleNamespace(**runpy.run_path(str(ROOT / "notebooks/refresh.py"), run_name="refresh"))


def notebook(name) -> dict:
    return json.loads((ROOT / f"notebooks/{name}.ipynb").read_text())


def pictures(cell) -> list:
    """The data of the cell's outputs that are pictures."""
    return [o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {})]


def test_what_is_kept():
    """Every cell was run, in order and without a complaint, the last one has drawn, and all of it is small."""
    assert [path.stem for path in refresh.paths()] == NAMES
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].get("Repository", "")
    for name in NAMES:
        cells = [cell for cell in notebook(name)["cells"] if cell["cell_type"] == "code"]
        first = "".join(cells[0]["source"])
        assert first == refresh.first_cell() and f'REPOSITORY = "{address}"' in first
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
        assert pictures(cells[-1])
    assert sum(path.stat().st_size for path in refresh.paths()) < 1_500_000


def first_cell(monkeypatch, folder, address="", card=None) -> list:
    """Run the first cell in a folder where jaxbandits is not installed; what it gives to pip."""
    given = []

    def run(command, **_):
        given.append(command[-1])
        return SimpleNamespace(returncode=0, stdout=card)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: card and name)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    source = refresh.FIRST_CELL.replace("@REPOSITORY@", address)
    with pytest.raises(SystemExit) as stop:  # JAX is imported here: new files need a new session
        exec(compile(source, "first cell", "exec"), {})
    return [*[w for w in given if "jaxbandits" in w], str(stop.value)]


def test_the_first_cell_installs(monkeypatch, tmp_path):
    address = "https://example.org/bandits"
    for card, extra in (
        (None, ""),
        ("550.54.15, 7.5\n", "[cuda12]"),  # a T4 with an older driver
        ("580.65.06, 7.0\n", "[cuda12]"),  # a V100, which CUDA 13 has left behind
        ("580.65.06, 9.0\n580.65.06, 9.0\n", "[cuda13]"),
    ):
        for folder, source in ((tmp_path, f"git+{address}"), (ROOT / "notebooks", ROOT.as_uri())):
            wanted, said = first_cell(monkeypatch, folder, address, card)
            assert wanted == f"jaxbandits{extra} @ {source}" and "Restart" in said
    (said,) = first_cell(monkeypatch, tmp_path)  # without an address
    assert "no public address yet" in said and "run this cell again" in said
    wanted, _ = first_cell(monkeypatch, ROOT / "notebooks")
    assert wanted == f"jaxbandits @ {ROOT.as_uri()}"


def test_the_page_of_a_notebook(tmp_path):
    """Its words, code, output and pictures; a link to Colab where the project has an address."""
    pages = SimpleNamespace(**runpy.run_path(str(ROOT / "docs/_ext/notebook_pages.py"), run_name="pages"))
    picture = {"output_type": "execute_result", "data": {"image/png": "aGk=", "text/plain": ["<x>"]}}
    both = [{"data": {"text/html": "<b>", "text/plain": "b"}}, picture]
    cells = [
        {"cell_type": "code", "source": ["install()"], "outputs": []},
        {"cell_type": "markdown", "source": ["# One\n", "\n", "Words. More: [b](other.ipynb)."]},
        {"cell_type": "code", "source": ["f()"], "outputs": [{"output_type": "stream", "text": ["```\n"]}, picture]},
        {"cell_type": "code", "source": ["g()"], "outputs": both},
    ]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}))
    pictures: dict = {}
    text = pages.text(tmp_path / "one.ipynb", None, pictures)
    assert text.startswith("# One\n\n{download}") and "olab" not in text
    assert pictures == {"one-1.png": b"hi", "one-2.png": b"hi"}
    assert "````{code-block} text\n:class: notebook-output\n```\n````" in text and "(one-2.png)" in text
    assert text.index("install()") < text.index("f()") < text.index("<b>")
    there = pages.text(tmp_path / "one.ipynb", "https://example.org/", {})
    assert "[open it in Colab](https://example.org/one.ipynb)" in there
    assert "- [One](one.md): Words.\n" in pages.overview([tmp_path / "one.ipynb"])


@pytest.mark.pages
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, monkeypatch, tmp_path):
    """All cells at small size, in an empty folder; a cell that fails raises."""
    monkeypatch.setenv("JAXBANDITS_SMALL", "1")
    run = refresh.with_first_cell(ROOT / f"notebooks/{name}.ipynb")
    for cell in run.cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
    refresh.run(run, tmp_path)
    code = [cell for cell in run.cells if cell["cell_type"] == "code"]
    assert pictures(code[-1])
    said = "".join(o["text"] for cell in code for o in cell["outputs"] if o.get("name") == "stderr")
    assert "Warning" not in said, said
