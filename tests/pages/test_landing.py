"""The first pages show what `docs/landing.py` draws, and what stands there is what it computes."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs/figures"
landing = SimpleNamespace(**runpy.run_path(str(ROOT / "docs/landing.py"), run_name="landing"))
SHOWN = json.loads((FIGURES / "landing.json").read_text())


@pytest.mark.pages
def test_the_figures_are_those_of_the_script():
    assert landing.prices(landing.sweep()) == pytest.approx(SHOWN["regret"], rel=1e-3)
    found = landing.audits()
    assert {name: one.epsilon_lower for name, one in found.items()} == pytest.approx(SHOWN["epsilon_lower"], rel=0.02)
    assert not found["honest"].refuted and found["two thirds"].refuted


def test_the_pictures_say_the_price_and_the_proof():
    words = {name: Image.open(FIGURES / f"landing-{name}.png").text["Description"] for name in ("trust", "audit")}
    times = landing.times(SHOWN["regret"])
    for name in ("central privacy", "local privacy"):
        assert f"{times[name]} times the regret" in words["trust"] and name in words["trust"]
    for bound in SHOWN["epsilon_lower"].values():
        assert f"at least {bound:.2f}" in words["audit"]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_pages_show_both_and_the_same_price(page):
    text, times = (ROOT / page).read_text(), landing.times(SHOWN["regret"])
    assert re.findall(r"figures/(landing-\w+\.png)\)", text) == ["landing-trust.png", "landing-audit.png"]
    assert re.findall(r"([\d.]+) times(?! as fast)", text)[:2] == [times["central privacy"], times["local privacy"]]
