"""Algorithm factories: keyword arguments in, `protocol.Algorithm` out. One algorithm a file, in six wings.

A file is loaded when its algorithm is used. Type checkers and editors read all of them in `__init__.pyi`, which
`python -m jaxbandits.stubs` writes.
"""

import os
import re

from jaxbandits.names import load_lazily


def _homes() -> dict[str, list[str]]:
    """Module -> its algorithms: the functions under `@factory` in the files of the wings, which are read alone."""
    found, room = {}, os.path.dirname(__file__)
    for wing in filter(str.isidentifier, os.listdir(room)):
        for file in os.listdir(f"{room}/{wing}"):
            if file.endswith(".py"):
                with open(f"{room}/{wing}/{file}", encoding="utf-8") as source:
                    _, *factories = source.read().split("\n@factory")
                names = [re.search(r"^def (\w+)", text, re.MULTILINE) for text in factories]
                found[f"{wing}.{file[:-3]}"] = [name[1] for name in names if name]
    return found


__getattr__, __dir__, __all__ = load_lazily(__name__, submod_attrs=_homes())
