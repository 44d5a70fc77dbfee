"""The page for users of other libraries: their blocks run where the library is installed, and both sides agree.

PEERS names another Python, in whose environment theirs are run: PEERS=peers/bin/python.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.pages
ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("PEERS", sys.executable)
PAGE = (ROOT / "docs/coming_from.md").read_text(encoding="utf-8")
# Names that SciPy and NumPy had when SMPyBandits was written, and no window for its pictures.
BEFORE = """\
import matplotlib, numpy, scipy.special, warnings
matplotlib.use("Agg")
warnings.simplefilter("ignore")
scipy.special.btdtri, numpy.in1d = scipy.special.betaincinv, numpy.isin
"""
# Library -> what is printed after its block: for each learner, the runs' final values.
AFTER = {
    "pymab": "print([list(map(float, one)) for one in regrets.reshape(200, -1).T])",
    "SMPyBandits": "print([[float(evaluator.getCumulatedRegret(i)[-1])] for i in (0, 1)])",
    "coba": "print([[float(x)] for x in rewards])",
}
TITLES = {"pymab": "PyMAB", "SMPyBandits": "SMPyBandits", "coba": "coba"}


def sections() -> dict[str, list[str]]:
    """Library -> the two Python blocks of its section, theirs and ours."""
    parts = re.split(r"^## From (\w+)\n", PAGE, flags=re.MULTILINE)[1:]
    sections = zip(parts[::2], parts[1::2], strict=True)
    return {name: re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for name, text in sections}


def played(library: str, tmp_path: Path) -> list[np.ndarray]:
    """What the block of a library gives, or skip."""
    there = subprocess.run([PYTHON, "-c", f"import importlib.util as u; exit(u.find_spec({library!r}) is None)"])
    if there.returncode:
        pytest.skip(f"{library} is not installed")
    theirs = sections()[TITLES[library]][0]
    code = f"{BEFORE if library == 'SMPyBandits' else ''}{theirs}\n{AFTER[library]}"
    ran = subprocess.run([PYTHON, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (found,) = re.findall(r"^\[\[.*\]\]$", ran.stdout, flags=re.MULTILINE)
    return [np.array(one) for one in json.loads(found)]


def ours(title: str) -> dict:
    """The names that our block of a section leaves behind, at the page's size."""
    names: dict = {}
    exec(f"import jaxbandits as jb\n{sections()[title][1]}".replace(', path="regret.png"', ""), names)
    return names


def test_every_section_has_both_sides_and_is_short():
    assert list(sections()) == ["PyMAB", "SMPyBandits", "coba", "obp"]
    for both in sections().values():
        assert len(both) == 2 and all(4 <= len([x for x in one.splitlines() if x.strip()]) <= 15 for one in both)


def test_pymab_has_our_regrets(tmp_path):
    theirs = played("pymab", tmp_path)
    here = ours("PyMAB")["regrets"].T
    for one, other in zip(theirs, here, strict=True):
        assert one.shape == other.shape == (200,)
        assert abs(one.mean() - other.mean()) < 4 * np.hypot(one.std(), other.std()) / np.sqrt(200)


def test_smpybandits_has_our_regrets(tmp_path):
    theirs = played("SMPyBandits", tmp_path)
    here = ours("SMPyBandits")["ds"].regret.isel(t=-1).values
    for one, other in zip(theirs, here, strict=True):  # a mean of as many runs
        assert abs(one[0] - other.mean()) < 4 * np.sqrt(2) * other.std() / np.sqrt(200)


def test_coba_learns_as_ours_does(tmp_path):
    random, linucb = played("coba", tmp_path)
    assert linucb > random
    here = ours("coba")["regrets"]
    assert float(here.sel(algorithm="LinUCB")) < float(here.sel(algorithm="random"))
