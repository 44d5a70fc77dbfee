"""Where something is in an author's files, as `file:line`: functions, errors, and the equations of traced programs.

An author is whoever wrote a user's part. Files of this package, of installed libraries and of the standard library
are no place of theirs: the answer is an empty string.
"""

import functools
import os
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jax.extend.core import JaxprEqn

from jaxbandits.validation import unwrapped

_PACKAGE = str(Path(__file__).parent) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))


@functools.lru_cache(maxsize=4096)  # asked of every frame of a trace
def of_author(path: str) -> bool:
    """Whether a file is neither of this package, nor of an installed or the standard library."""
    inside = path.startswith((_PACKAGE, *_LIBRARIES)) or "site-packages" in path or "dist-packages" in path
    return not inside and not path.startswith("<frozen")


def place_of_frames(frames: Iterable[tuple[str, int | None]]) -> str:
    """The innermost of the author's frames. frames: pairs (file, line), the outermost first."""
    places = [f"{path}:{line}" for path, line in frames if of_author(path)]
    return places[-1] if places else ""


def place_of_caller() -> str:
    """The author's line that is being run, the innermost of them."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None)]
    return place_of_frames(reversed(frames))


def place_of_error(error: BaseException) -> str:
    """Where the author's code raised an error, or called what raised it."""
    return place_of_frames((frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__))


def place_of_function(function: Any) -> str:
    """Where an author's function, or the function inside a partial or a decorator, is defined."""
    for _ in range(20):  # wrappers inside wrappers; a mock object wraps itself for ever
        outer, function = function, unwrapped(function).function
        function = getattr(function, "__wrapped__", function)
        if function is outer:
            break
    code = getattr(function, "__code__", None)
    return place_of_frames([(code.co_filename, code.co_firstlineno)]) if code is not None else ""


def place_of_equation(equation: JaxprEqn) -> str:
    """The author's line that made an equation of a traced program."""
    frames = getattr(equation.source_info.traceback, "frames", ())
    return place_of_frames((frame.file_name, frame.line_num) for frame in reversed(list(frames)))
