"""Every parameter of a public function has an entry of its own in the docstring, with its type and what it does."""

import types

import pytest
from numpydoc.validate import validate

import jaxbandits as jb

MODULES = "algorithms environments adversaries estimators learners mechanisms theory privacy plot".split()
WANTED = {
    "GL08": "there is a docstring",
    "SS03": "the summary ends with a period",
    "SS06": "the summary is one line",
    "PR01": "every parameter has an entry",
    "PR02": "every entry is a parameter",
    "PR03": "entries stand in the order of the parameters",
    "PR04": "an entry has a type",
    "PR07": "an entry says what the parameter does",
    "RT01": "what is returned is described",
    "RT03": "a returned value has a description",
}


def public_functions() -> dict[str, str]:
    """Public name -> where it is defined: a module may carry the name of its function."""
    functions = {name: getattr(jb, name) for name in jb.__all__}
    for module in MODULES:
        home = getattr(jb, module)
        exported = getattr(home, "__all__", None) or [n for n in dir(home) if not n.startswith("_")]
        functions |= {f"{module}.{name}": getattr(home, name) for name in exported}
    return {
        name: f"{function.__module__}.{function.__qualname__}"
        for name, function in functions.items()
        if isinstance(function, types.FunctionType) and function.__module__.startswith("jaxbandits")
    }


FUNCTIONS = public_functions()


def faults(name: str) -> list[str]:
    return [f"{code} {text}" for code, text in validate(name)["errors"] if code in WANTED]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_has_an_entry(name):
    assert faults(FUNCTIONS[name]) == []


def test_a_forgotten_parameter_is_found(monkeypatch):
    original = jb.algorithms.ucb1.__doc__
    assert original is not None and "num_arms : " in original
    monkeypatch.setattr(jb.algorithms.ucb1, "__doc__", original.replace("num_arms : ", "number_of_arms : "))
    found = faults(FUNCTIONS["algorithms.ucb1"])
    assert any(fault.startswith("PR01") and "num_arms" in fault for fault in found)
    assert any(fault.startswith("PR02") and "number_of_arms" in fault for fault in found)
