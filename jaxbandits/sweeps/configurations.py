"""The arguments of a sweep as text and as JSON."""

import functools
from typing import Any

import numpy as np

from jaxbandits.learners.transformations import is_transformation, maker, program_of
from jaxbandits.sweeps.compilation.program_digest import fingerprint
from jaxbandits.sweeps.wording import name_of
from jaxbandits.validation import unwrapped


def text(x: Any) -> str:
    """A factory, array or number as short text."""
    if is_transformation(x):
        config = _transformation(x)
        return f"{config['name'].rpartition('.')[2]} {config['program'][:8]}"
    if callable(x):
        inner = ", ".join(f"{k}={text(v)}" for k, v in unwrapped(x).bound.items())
        return f"{name_of(x)}({inner})" if inner else name_of(x)
    return str(x)


def jsonable(x: Any) -> Any:
    """Anything a config may hold, as JSON."""
    if isinstance(x, dict):
        return {str(k): jsonable(v) for k, v in x.items()}
    if type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "__array__"):
        return jsonable(np.asarray(x))
    if hasattr(x, "config"):  # a called part inside another, such as the losses behind experts
        return jsonable(x.config or {"name": "own"})
    if is_transformation(x):
        return dict(_transformation(x))
    if callable(x):  # a factory or a partial
        return {"name": name_of(x), **{k: jsonable(v) for k, v in unwrapped(x).bound.items()}}
    if isinstance(x, list | tuple | np.ndarray) and _numbers(x) > 1000:
        return {"shape": list(np.shape(x)), "crc32": _crc(np.asarray(x))}
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, range):
        return [x.start, x.stop]
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, float) and not np.isfinite(x):
        return str(x)
    return x if isinstance(x, str | int | float | bool) or x is None else str(x)


def _numbers(x: Any) -> int:
    """How many entries an array, or nested lists of one shape, hold. Of other lists each entry is written by itself."""
    try:
        return np.size(x)
    except ValueError:  # entries of different lengths, such as the arms of an environment beside one number
        return 0


@functools.cache
def _transformation(x: Any) -> dict[str, str]:
    """The function that made an optax transformation, and a hash of what it computes: its numbers are in closures."""
    try:
        program = fingerprint([program_of(x)], [])
    except Exception:  # a user's own, of which no more is recorded: chunks are named by the whole lane's program
        program = "unknown"
    return {"name": maker(x), "program": program}


def _crc(x: np.ndarray[Any, Any]) -> int:
    import zlib

    if x.dtype.kind not in "biuf":  # text: an entry each, whatever its width in the array
        return zlib.crc32("\0".join(map(str, x.ravel().tolist())).encode())
    return zlib.crc32(np.ascontiguousarray(x, np.float64).tobytes())
