"""Files of arrays that carry a digest of what they hold: flipped bits and files cut off are noticed when read."""

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray[Any, Any]]


class Damaged(Exception):
    """A file does not hold what it says."""


class Unreadable(OSError):
    """The disk, not the file, is at fault."""


def pack(about: dict[str, Any], arrays: Arrays) -> bytes:
    """The content of an npz file of arrays. `about`, which says what they are, and a digest are in it as JSON."""
    about = about | {"sha256": _digest(about, arrays)}
    buffer = io.BytesIO()
    members: dict[str, Any] = {"about": np.array(json.dumps(about)), **arrays}
    np.savez(buffer, **members)
    return buffer.getvalue()


def unpack(path: Path) -> tuple[dict[str, Any], Arrays]:
    """What `pack` was given. `Damaged` says what is wrong with the file, `Unreadable` that the disk cannot be read."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise Damaged("a link to nothing") from None
        raise
    except IsADirectoryError:
        raise Damaged("a directory") from None
    except OSError as error:
        raise Unreadable(error.errno, f"cannot read {path} ({os.strerror(error.errno or 0)}): check the disk") from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        claimed = about.pop("sha256")
    except Exception as error:  # the content was read: whatever fails, it is not what `pack` wrote
        raise Damaged(f"not one of ours, or cut off ({error})") from None
    if claimed != _digest(about, arrays):
        raise Damaged("its content does not match its sha256")
    return about, arrays


def _digest(about: dict[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        x = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {x.dtype.str} {x.shape}".encode())
        digest.update(x.data if x.size else b"")
    return digest.hexdigest()
