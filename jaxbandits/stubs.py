"""Write what type checkers and editors read of the public names: python -m jaxbandits.stubs

Names are loaded when they are used, arguments may stand in a TypedDict, and docstrings are completed from declarations:
nobody sees that without running it. So each package's `__init__.pyi` has all signatures, defaults and docstrings as
`help` shows them. `make` and every build of the package write them anew; git does not keep them, and nothing reads them
at run time.
"""

import ast
import builtins
import importlib
import inspect
import sys
import textwrap
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, Literal, get_args, get_origin

import jax.typing

from jaxbandits import typing
from jaxbandits.declared import UNIONS

NAMES = ("algorithms", "environments", "adversaries", "theory", "mechanisms", "estimators", "learners")
PACKAGES = ("jaxbandits", *(f"jaxbandits.{name}" for name in NAMES))


def _unions() -> dict[str, tuple[str, tuple[Any, ...]]]:
    """Names of unions, with their home and members; those of most members first."""
    hints = [(home.__name__, name, hint) for home in (typing, jax.typing) for name, hint in vars(home).items()]
    found = {name: (home, get_args(hint)) for home, name, hint in hints if get_origin(hint) in UNIONS}
    return dict(sorted(found.items(), key=lambda row: -len(row[1][1])))


class Stub:
    """The stub of a package, as text."""

    def __init__(self, package: ModuleType) -> None:
        self.unions = _unions()
        self.exported, self.imports = [*package.__all__, *getattr(package, "FURTHER", ())], dict[str, str]()
        values = {name: getattr(package, name) for name in self.exported}
        functions = {name: value for name, value in values.items() if isinstance(value, FunctionType)}
        for name in values.keys() - functions.keys():
            value, home = values[name], getattr(values[name], "__module__", "jaxbandits.version")
            home = value.__name__.rpartition(".")[0] if isinstance(value, ModuleType) else home
            self.imports[name] = f"from {home} import {name} as {name}"
        written = [self.function(name, function) for name, function in functions.items()]
        head = [f'"""{package.__doc__}"""\n', *sorted(self.imports.values()), "\n__all__: list[str]"]
        self.text = "\n".join([*head, *written, ""])

    def function(self, name: str, function: FunctionType) -> str:
        """A function: signature and docstring."""
        home, signature, lines = sys.modules[function.__module__], inspect.signature(function), list[str]()
        for key, parameter in signature.parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY and "    *,\n" not in lines:
                lines.append("    *,\n")
            default = "" if parameter.default is parameter.empty else f" = {self.default(parameter.default)}"
            lines.append(f"    {key}: {self.type(parameter.annotation, home)}{default},\n")
        doc = textwrap.indent((function.__doc__ or "").replace("\\", "\\\\"), "    ").strip()
        returned = self.type(signature.return_annotation, home)
        return f'\ndef {name}(\n{"".join(lines)}) -> {returned}:\n    """{doc}\n    """'

    def default(self, value: object) -> str:
        """A default as `help` shows it, where that can be read back."""
        if isinstance(value, FunctionType):
            return value.__name__ if value.__name__ in self.exported else "..."
        text = repr(value)
        if text in ("inf", "nan"):
            self.imports[text] = f"from math import {text}"
        return text

    def type(self, hint: Any, home: ModuleType) -> str:
        """An annotation; home: the module whose names stand in a text."""
        if isinstance(hint, str):
            if alias := next((name for name, value in vars(home).items() if value is hint), None):
                home = sys.modules[_import_of(alias, home).split()[1]]  # the text has names of that module
            for node in ast.walk(ast.parse(hint, mode="eval")):
                if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                    self.imports.setdefault(node.id, _import_of(node.id, home))
            return hint
        if hint in (None, NoneType):
            return "None"
        if hint is Ellipsis:
            return "..."
        if isinstance(hint, list):
            return f"[{', '.join(self.type(part, home) for part in hint)}]"
        origin, parts = get_origin(hint), list(get_args(hint))
        if origin is Literal:
            return f"{self.name_of_class(Literal)}[{', '.join(map(repr, parts))}]"
        if origin in UNIONS:
            names = []
            for name, (where, members) in self.unions.items():
                if all(member in parts for member in members):
                    self.imports.setdefault(name, f"from {where} import {name}")
                    names.append(name)
                    parts = [part for part in parts if part not in members]
            return " | ".join([*names, *(self.type(part, home) for part in parts)])
        if hasattr(hint, "dim_str"):
            kind = hint.__name__.partition("[")[0]
            self.imports.setdefault(kind, f"from jaxtyping import {kind}")
            return f'{kind}[{self.type(hint.array_type, home)}, "{hint.dim_str}"]'
        if parts:
            return f"{self.name_of_class(origin)}[{', '.join(self.type(part, home) for part in parts)}]"
        return self.name_of_class(hint)

    def name_of_class(self, kind: Any) -> str:
        """A class by its name, which is imported from where it is public."""
        name = (getattr(kind, "__name__", None) or kind._name).rpartition(".")[2]
        homes = (kind.__module__.partition(".")[0], "jax", kind.__module__)
        where = next(home for home in homes if getattr(sys.modules[home], name, None) is kind)
        if where != "builtins":
            self.imports.setdefault(name, f"from {where} import {name}")
        return name


def _import_of(name: str, module: ModuleType) -> str:
    """The line by which a module imports a name, be it for type checkers alone; else its import from there."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    node.names = [alias]
                    return ast.unparse(node)
    return f"from {module.__name__} import {name}"


def main() -> None:
    """Write the stubs, and say where they are."""
    for package in map(importlib.import_module, PACKAGES):
        path = Path(str(package.__file__)).with_suffix(".pyi")
        path.write_text(Stub(package).text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
