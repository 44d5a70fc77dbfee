"""The pages on other tools and on learners of other libraries: their blocks run where the tool is installed."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.pages
DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    sections = re.split(r"^## (\w+)[^\n]*\n", text, flags=re.MULTILINE)[1:]
    found = zip(
        sections[::2], (re.search(r"^```python\n(.*?)^```$", x, re.M | re.S) for x in sections[1::2]), strict=True
    )
    return {name: block[1] for name, block in found if block}


BLOCKS = blocks_of("other_tools.md") | blocks_of("bring_your_learner.md")
# Section -> the module that it needs, and what is printed at the end; test_blocks.py runs those of gymnasium and JAX.
NEEDS = {
    "MLflow": ("mlflow", ""), "Hydra": ("hydra", "ldp_ucb"), "joblib": ("joblib", ", "),
    "PyMAB": ("pymab", "PyMAB"), "MABWiser": ("mabwiser", "MABWiser"), "river": ("river", "river"),
}  # fmt: skip


def test_every_section_has_its_block():
    assert list(BLOCKS) == ["gymnasium", "MLflow", "Hydra", "joblib", "submitit", "JAX", "PyMAB", "MABWiser", "river"]
    for code in BLOCKS.values():
        compile(code, "block", "exec")


@pytest.mark.parametrize("section", NEEDS)
def test_a_block_runs_where_its_tool_is_installed(section, tmp_path):
    module, printed = NEEDS[section]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    (tmp_path / "block.py").write_text(BLOCKS[section])
    ran = subprocess.run([sys.executable, "block.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0 and printed in ran.stdout, ran.stderr[-2000:]
