"""What editors show of the public functions, which read `__init__.pyi` alone, is what `help` shows."""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import jedi
import pytest

import jaxbandits
from jaxbandits.stubs import PACKAGES, Stub
from jaxbandits.typing import Scalar

ROOT = Path(__file__).parents[2]


def functions(package: str) -> dict[str, FunctionType]:
    home = importlib.import_module(package)
    found = {name: getattr(home, name) for name in home.__all__}
    return {f"{package}.{name}": one for name, one in found.items() if isinstance(one, FunctionType)}


FUNCTIONS = {name: one for package in PACKAGES for name, one in functions(package).items()}


def defaults(function: FunctionType) -> dict[str, str]:
    """Argument -> its default as `help` shows it, "" for none; a function's by its name."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        value = "" if parameter.default is parameter.empty else parameter.default
        found[name] = getattr(value, "__name__", value if value == "" else repr(value))
    return found


def plain(text: str) -> str:
    """A default as pyright writes it, 2.0 as 2, without the star that may follow it."""
    return re.sub(r"\b(\d+)\.0\b", r"\1", text).removesuffix(", *").replace(", )", ",)")


def test_signatures_have_the_names_of_types():
    """As `help` and IPython show them; what programs read of an annotation is the type itself."""
    shown = {name: str(inspect.signature(one)) for name, one in FUNCTIONS.items()}
    assert not [name for name, text in shown.items() if re.search(r"numpy\.|collections\.abc|typing\.|Optional", text)]
    scale = inspect.signature(jaxbandits.mechanisms.laplace_scale)
    assert str(scale) == "(sensitivity: Scalar, epsilon: Scalar) -> float"
    assert scale.parameters["epsilon"].annotation == Scalar and str(scale.parameters["epsilon"]) == "epsilon: Scalar"
    assert ", checkpoints: Vector | int = 200, dtype: DType = 'float32', " in shown["jaxbandits.sweep"]


@pytest.mark.parametrize("package", PACKAGES)
def test_stubs_are_up_to_date(package):
    home = importlib.import_module(package)
    assert Path(home.__file__).with_suffix(".pyi").read_text("utf-8") == Stub(home).text, "run `make stubs`"


@pytest.mark.pages
@pytest.mark.parametrize("package", PACKAGES)
def test_jedi_shows_arguments_defaults_and_text(package):
    names = list(functions(package))
    script = jedi.Script("\n".join([f"import {package}", *(f"{name}()" for name in names)]), project=jedi.Project(ROOT))
    for line, name in enumerate(names, 2):
        (shown,) = script.get_signatures(line, len(name) + 1)
        arguments = {p.name: p.to_string().partition("=")[2].strip() for p in shown.params if p.name != "*"}
        wanted = defaults(FUNCTIONS[name]) | ({"delta": "..."} if name.endswith("mechanisms.guarantee") else {})
        assert list(arguments.items()) == list(wanted.items()), name
        assert inspect.cleandoc(shown.docstring(raw=True)) == inspect.getdoc(FUNCTIONS[name]), name


@pytest.mark.pages
def test_pyright_shows_arguments_and_defaults(tmp_path):
    imports = "\n".join(f"import {package}" for package in PACKAGES)
    path = tmp_path / "mine.py"
    path.write_text("\n".join([imports, *(f"reveal_type({name})" for name in FUNCTIONS)]))
    checker = shutil.which("basedpyright", path=str(Path(sys.executable).parent))
    assert checker, "basedpyright is among the development tools"
    command = [checker, "--outputjson", "--pythonpath", sys.executable, str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    shown = {}
    for answer in json.loads(done.stdout)["generalDiagnostics"]:
        if told := re.fullmatch(r'Type of "(.*)" is "\((.*)\) -> .*"', answer["message"], re.DOTALL):
            rows = (row.split(": ", 1) for row in re.split(r",\s+(?=\w+: )", told[2].removeprefix("*, ")))
            shown[told[1]] = {name.strip(" *,"): row.rpartition(" = ")[2] if " = " in row else "" for name, row in rows}
    for name, function in FUNCTIONS.items():
        wanted = defaults(function) | ({"delta": "..."} if name.endswith("mechanisms.guarantee") else {})
        assert {key: plain(text) for key, text in shown[name].items()} == {k: plain(x) for k, x in wanted.items()}, name


def test_a_declaration_that_changes_changes_the_stub(monkeypatch):
    before = Stub(jaxbandits.adversaries).text
    monkeypatch.setattr(jaxbandits.adversaries.huber, "__doc__", "Other words.")
    assert Stub(jaxbandits.adversaries).text != before
