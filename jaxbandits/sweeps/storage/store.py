"""Finished chunks on disk, each a file that says what it is and whether it is whole.

DIR/chunks/sweep.json                           what every chunk of this directory has in common
DIR/chunks/ab/<key>.<first>-<stop>.npz          seeds first .. stop - 1 of the cell with that key
DIR/chunks/begun/<digest>.npz                   lanes of a long call on their way (see `Begun`)

A file is written under a temporary name, fsynced and renamed: it is there whole or not at all. It carries a sha256 of its
content and its own key, so that a flipped bit, a truncated or a foreign file is noticed when it is read, set aside as
`.bad` and computed again. Any number of processes may work on one store: what two of them write at once is the same.
"""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import time
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.sweeps.storage.dataset_file import CHUNKS
from jaxbandits.validation import difference

CHUNK_BYTES = 1 << 18  # of regret in one file: what a crash between two renames can cost, and the grain of shards
STALE_SECONDS = 3600  # a temporary file older than this belongs to nobody
KEYS = 2  # how chunks are named; raise it when the engine's own arithmetic changes results. Older chunks are not read
FIXED = ("horizon", "environment", "reward_adversary", "message_adversary", "checkpoints", "dtype")
_NAME = re.compile(r"([0-9a-f]{64})\.(\d+)-(\d+)\.npz")


class Damaged(Exception):
    """A file that is not what it says."""


class Piece(NamedTuple):
    """One file: seeds first .. stop - 1 of a cell."""

    key: str
    first: int
    stop: int
    path: Path


class Begun(NamedTuple):
    """A call of a long sweep on its way: where its lanes stand after whole windows."""

    keys: tuple[str, ...]  # of its cells, in order
    first: int  # first seed
    lanes: int  # seeds computed, padded
    seeds: int  # seeds kept
    span: int = 0  # position in the schedule
    window: int = 0  # windows of that span already played


class Unreadable(OSError):
    """The disk, not the file, is at fault."""


def pack(about: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """An npz of arrays, with what they are and a digest of everything as JSON beside them."""
    about = about | {"sha256": _digest(about, arrays)}
    buffer = io.BytesIO()
    members: dict[str, Any] = {"about": np.array(json.dumps(about)), **arrays}
    np.savez(buffer, **members)
    return buffer.getvalue()


def unpack(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """What `pack` was given; `Damaged` says what is wrong with the file."""
    content = _content(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        claimed = about.pop("sha256")
    except Exception as error:  # the content is here: whatever fails, it is not what we wrote
        raise Damaged(f"not one of ours, or cut off ({error})") from None
    if claimed != _digest(about, arrays):
        raise Damaged("its content does not match its sha256")
    return about, arrays


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise Damaged("a link to nothing") from None
        raise
    except IsADirectoryError:
        raise Damaged("a directory") from None
    except OSError as error:
        raise Unreadable(error.errno, f"cannot read {path} ({os.strerror(error.errno or 0)}): check the disk") from None


def _digest(about: dict, arrays: dict) -> str:
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        x = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {x.dtype.str} {x.shape}".encode())
        found.update(x.data if x.size else b"")
    return found.hexdigest()


def block_of(checkpoints: int) -> int:
    """Seeds in a file at most: a power of two fixed by the number of checkpoints, boundaries counted from seed 0."""
    return 1 << int(np.clip(np.log2(CHUNK_BYTES / (8 * checkpoints)), 3, 10))


class Store:
    """The chunks of one directory."""

    def __init__(self, directory):
        self.home = Path(directory) / CHUNKS
        self.reported: list[str] = []  # what was set aside, and why

    @property
    def locked(self) -> bool:
        """Whether there is a store here that cannot be written, as on a read-only disk."""
        return self.home.is_dir() and not os.access(self.home, os.W_OK)

    def prepare(self) -> None:
        """Make the directory, see that it can be written, and remove temporary files that nobody owns any more."""
        try:
            (self.home / "begun").mkdir(parents=True, exist_ok=True)
            self._write(self.home / "probe", b"")
            (self.home / "probe").unlink(missing_ok=True)
        except OSError as error:
            raise ValueError(
                f"store = {str(self.home.parent)!r}: cannot write there ({os.strerror(error.errno or 0)}): choose a directory "
                f"that can be written"
            ) from None
        for path in self.home.rglob("*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    @property
    def token(self) -> str:
        """A word by which another machine can tell that it sees this very directory."""
        path = self.home / "token"
        if not path.exists():
            self._write(path, uuid.uuid4().hex.encode())
        return path.read_text()

    def clear(self) -> None:
        """Remove what a store writes, and nothing else."""
        ours = [p for p in self.home.rglob("*") if p.name in ("sweep.json", "token") or p.suffix in (".bad", ".part")]
        ours += [p for p in self.home.glob("*/*.npz") if _NAME.fullmatch(p.name) or p.parent.name == "begun"]
        for path in ours:
            path.unlink(missing_ok=True)

    def claim(self, config: dict, common: dict) -> None:
        """Record what all chunks here have in common; ValueError names what differs from an earlier run.

        common: the configuration less what is at its default; releases up to 0.1.0 wrote `config`, the whole of it.
        """
        path, asked = self.home / "sweep.json", {key: common.get(key) for key in FIXED}
        try:
            written = json.loads(path.read_text())
            kept = dict(written["config"])
        except (OSError, ValueError, KeyError, TypeError):  # none yet, or unreadable: chunks carry their own keys
            written, kept = {}, {}
        old = "schema" not in written
        now = {key: config.get(key) for key in FIXED} if old else asked
        differing = [k for k in FIXED if k in kept and kept[k] != now[k] and not _grown(k, kept[k], now[k])]
        if differing and any(self.home.glob("*/*.npz")):
            said = "; ".join(difference(key, kept[key], now[key]) for key in differing)
            raise ValueError(
                f"{self.home.parent} holds another run ({', '.join(differing)} differ: {said}): "
                f"choose another directory, or replace it (`jaxbandits run --fresh`; from Python, delete it)"
            )
        if kept and (old or written["schema"] < KEYS) and any(self.home.glob("*/*.npz")):
            warnings.warn(
                f"{self.home.parent}: its chunks were made by an older release under keys that could be stale: they are left "
                f"alone, and everything is computed anew beside them",
                UserWarning, stacklevel=2,
            )  # fmt: skip
        if kept != asked or written.get("schema") != KEYS:
            content = {"config": asked, "schema": KEYS}
            self._write(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())

    def pieces(self, keys) -> dict[str, list[Piece]]:
        """The files of these keys, by name alone, sorted by seed. Files that are none of ours are set aside."""
        wanted: dict[str, list[Piece]] = {key: [] for key in keys}
        for folder in {key[:2] for key in wanted}:
            with contextlib.suppress(FileNotFoundError):
                for entry in os.scandir(self.home / folder):
                    match = _NAME.fullmatch(entry.name)
                    if match and match[1] in wanted:
                        wanted[match[1]].append(Piece(match[1], int(match[2]), int(match[3]), Path(entry.path)))
                    elif not match and entry.name.endswith(".npz"):
                        self.set_aside(Path(entry.path), "not a chunk's name")
        for found in wanted.values():
            found.sort(key=lambda piece: piece[1:3])
        return wanted

    def read(self, piece: Piece, shapes: dict[str, tuple]) -> dict[str, np.ndarray] | None:
        """A chunk's arrays, or None where the file is damaged: it is set aside then, to be computed again.

        shapes: the names it should hold, and the shape of each behind the seeds.
        """
        try:
            about, arrays = unpack(piece.path)
            if about != {"key": piece.key, "first": piece.first}:
                raise Damaged("it holds another chunk")
            if {name: x.shape for name, x in arrays.items()} != {
                n: (piece.stop - piece.first, *s) for n, s in shapes.items()
            }:
                raise Damaged("it holds other arrays")
        except FileNotFoundError:
            return None
        except Damaged as error:
            self.set_aside(piece.path, str(error))
            return None
        return arrays

    def write(self, key: str, first: int, arrays: dict) -> None:
        """Keep seeds first .. of a cell; every array has the seeds as its leading axis."""
        stop = first + len(next(iter(arrays.values())))
        path = self.home / key[:2] / f"{key}.{first}-{stop}.npz"
        path.parent.mkdir(exist_ok=True)
        self._write(path, pack({"key": key, "first": first}, arrays))

    def set_aside(self, path: Path, why: str) -> None:
        """Rename a file to `.bad` and say so. Raises `Unreadable` where it cannot be renamed: it would be found again for ever."""
        try:
            path.replace(path.with_name(f"{path.name}.bad"))
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            said = f"{path} is damaged ({why}) and cannot be set aside ({os.strerror(error.errno or 0)})"
            raise Unreadable(error.errno, f"{said}: delete it, or make its folder writable, and run it again") from None
        self.reported.append(f"{path.relative_to(self.home.parent)}: {why}")
        warnings.warn(f"set aside {self.reported[-1]}", RuntimeWarning, stacklevel=2)

    # ---- lanes on their way

    def keep_begun(self, begun: Begun, leaves: list) -> None:
        """Keep where a long call stands and its lanes' arrays, in place of where it stood."""
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        self._write(self._begun_path(begun), pack(begun._asdict(), arrays))

    def begun(self) -> Iterator[Begun]:
        """Every call on its way, without its lanes."""
        for path in sorted((self.home / "begun").glob("*.npz")):
            try:
                with np.load(path, allow_pickle=False) as file:
                    about = json.loads(str(file["about"]))
                about.pop("sha256")
                found = Begun(**(about | {"keys": tuple(about["keys"])}))
                if path != self._begun_path(found):
                    raise Damaged("it holds another call")
            except FileNotFoundError:
                continue
            except Exception as error:
                self.set_aside(path, f"not one of ours, or cut off ({error})")
            else:
                yield found

    def begun_as(self, like: Begun) -> tuple[Begun, list[np.ndarray]] | None:
        """Where this very call stands and its lanes, if it was begun."""
        path = self._begun_path(like)
        try:
            about, arrays = unpack(path)
            found = Begun(**(about | {"keys": tuple(about["keys"])}))
            return found, [arrays[f"leaf{i}"] for i in range(len(arrays))]
        except FileNotFoundError:
            return None
        except (Damaged, KeyError, TypeError) as error:
            self.set_aside(path, str(error))
            return None

    def forget_begun(self, begun: Begun) -> None:
        """The call is finished."""
        self._begun_path(begun).unlink(missing_ok=True)

    def _begun_path(self, begun: Begun) -> Path:
        name = hashlib.sha256(repr((begun.keys, begun.first, begun.lanes, begun.seeds)).encode()).hexdigest()
        return self.home / "begun" / f"{name}.npz"

    def _write(self, path: Path, content: bytes) -> None:
        part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
        try:
            with open(part, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            said = (
                f"cannot write {path} ({error.strerror}): {remedy(error)} and run it again, everything finished is kept"
            )
            raise OSError(error.errno, said) from None
        with contextlib.suppress(OSError):  # the name itself; not every file system can
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def remedy(error: Exception) -> str:
    """What helps against an error of writing. HDF5 has its own words, with the system's among them."""
    room = (errno.ENOSPC, errno.EDQUOT)
    full = getattr(error, "errno", None) in room or any(os.strerror(number) in str(error) for number in room)
    return "make room" if full else "see to the disk"


def _grown(key: str, kept, asked) -> bool:
    """A list of horizons is an axis, and axes may grow and shrink."""
    old, new = (set(x if isinstance(x, list) else [x]) for x in (kept, asked)) if key == "horizon" else ({0}, {1})
    return old <= new or old >= new
