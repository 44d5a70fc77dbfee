"""Finished chunks on disk, each a file that says what it is and whether it is whole.

DIR/chunks/sweep.json                           what every chunk of this directory has in common
DIR/chunks/ab/<key>.<first>-<stop>.npz          seeds first .. stop - 1 of the cell with that key
DIR/chunks/begun/<digest>.npz                   lanes of a long call on their way (see `BegunCall`)
DIR/chunks/spent/<name>.txt                     seconds that one process has computed

A file is written under a temporary name, fsynced and renamed: it is there whole or not at all. It carries a sha256 of
its content and its own key, so that a flipped bit, a truncated or a foreign file is noticed when it is read. It is
then renamed to `.bad`, and the chunk is computed again. Any number of processes may work on one store: what two of
them write at once is the same.
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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.sweeps.storage.dataset_file import CHUNKS, RESULTS
from jaxbandits.validation import difference

Arrays = dict[str, np.ndarray[Any, Any]]
# Bytes of regret in one file: a crash between two renames can cost as much, and shards are made of whole files.
CHUNK_BYTES = 1 << 18
WRITE_SECONDS = 5.0  # between two writes of the seconds computed: what is lost where the process is killed
STALE_SECONDS = 3600  # a temporary file older than this belongs to nobody
UNFINISHED = f".{RESULTS}.*.part"  # results that are being written
# The version of keys: raise it when results change and no trace of a lane shows it, as after an edit of the host's
# regret, of a rule of our own operations for `vmap` or for lowering, or of compilers' options. Chunks of older versions
# are not read. decisions.md#what-names-a-chunk
KEYS = 5
KERNELS = 3  # the version of kernels, raised as KEYS is: in keys of accelerators alone, which play by them
# The settings that all chunks of a directory share.
SHARED = ("horizon", "environment", "reward_adversary", "message_adversary", "checkpoints", "dtype")
# docs/decisions.md#names-of-files
_NAME = re.compile(r"([0-9a-f]{64})\.(\d+)-(\d+)\.npz")


class Damaged(Exception):
    """A file does not hold what it says."""


class Unreadable(OSError):
    """The disk, not the file, is at fault."""


class Chunk(NamedTuple):
    """One file: seeds first .. stop - 1 of a cell."""

    first: int
    stop: int
    key: str
    path: Path


class BegunCall(NamedTuple):
    """An unfinished call of a long sweep: where its lanes stand after whole windows."""

    keys: tuple[str, ...]  # of its cells, in order
    first: int  # first seed
    lanes: int  # seeds computed, padded
    seeds: int  # seeds of the result
    span: int = 0  # position in the schedule
    window: int = 0  # windows of that span already played


def block_of(checkpoints: int) -> int:
    """The largest number of seeds in a file, a power of two. Files begin at multiples of it."""
    return 1 << int(np.clip(np.log2(CHUNK_BYTES / (8 * checkpoints)), 3, 10))


class Store:
    """The chunks of one directory."""

    def __init__(self, directory: Path, block: int = 1, began: float = 0.0) -> None:
        self.home = directory.absolute() / CHUNKS  # the working directory may change
        self.block, self.began = block, began  # seeds of a file, when this sweep began
        self.spent_here = self.home / "spent" / f"{uuid.uuid4().hex[:12]}.txt"
        self.reported: list[str] = []  # which files were set aside, and why
        self.spent: float | None = None  # the seconds of this process that were written down last

    @property
    def locked(self) -> bool:
        """Whether there is a store here that cannot be written, as on a read-only disk."""
        return os.path.isdir(self.home) and not os.access(self.home, os.W_OK)

    def prepare(self) -> None:
        """Create the directory, check that it can be written, and remove temporary files that nobody owns any more."""
        try:
            (self.home / "begun").mkdir(parents=True, exist_ok=True)
            self.write_file(self.home / "probe", b"")
            (self.home / "probe").unlink(missing_ok=True)
        except OSError as error:
            why = f"cannot write there ({os.strerror(error.errno or 0)}): choose a directory that can be written"
            raise ValueError(f"store = {str(self.home.parent)!r}: {why}") from None
        self._delete_stale([*self.home.rglob("*.part"), *self.home.parent.glob(UNFINISHED)])

    @staticmethod
    def _delete_stale(paths: Iterable[Path]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > STALE_SECONDS:
                    path.unlink()

    @property
    def token(self) -> str:
        """A word by which another machine can tell that it sees this very directory."""
        path = self.home / "token"
        if not path.exists():
            self.write_file(path, uuid.uuid4().hex.encode())
        return path.read_text()

    def delete_files(self) -> None:
        """Remove what a store writes, and nothing else."""
        ours = [p for p in self.home.rglob("*") if p.name in ("sweep.json", "token") or p.suffix in (".bad", ".part")]
        ours += [p for p in self.home.glob("*/*.npz") if _NAME.fullmatch(p.name) or p.parent.name == "begun"]
        for path in [*ours, *self.home.glob("spent/*.txt")]:
            path.unlink(missing_ok=True)
        self._delete_stale(self.home.parent.glob(UNFINISHED))  # another process may be writing one

    @property
    def seconds(self) -> float:
        """The seconds that all processes together have computed for this store."""
        total = 0.0
        for path in self.home.glob("spent/*.txt"):
            with contextlib.suppress(OSError, ValueError):  # half written by a process that was killed
                total += float(path.read_text())
        return total

    def note_seconds(self, last: bool = False) -> None:
        """Write this process's seconds down if it is time; last: in any case. A full disk is no reason to stop."""
        seconds = time.perf_counter() - self.began
        if last or self.spent is None or seconds - self.spent > WRITE_SECONDS:
            self.spent = seconds
            with contextlib.suppress(OSError):
                self.spent_here.parent.mkdir(exist_ok=True)
                self.spent_here.write_text(f"{seconds:.3f}\n")

    def record_settings(self, config: dict[str, Any], common: dict[str, Any]) -> None:
        """Record what all chunks here have in common; ValueError names what differs from an earlier run.

        common: the configuration without what has its default value. Releases up to 0.1.0 wrote `config`, the whole
        of it.
        """
        path, asked = self.home / "sweep.json", {key: common.get(key) for key in SHARED}
        try:
            written = json.loads(path.read_text())
            stored = dict(written["config"])
        except (OSError, ValueError, KeyError, TypeError):  # none yet, or unreadable: chunks carry their own keys
            written, stored = {}, {}
        old = "schema" not in written
        now = {key: config.get(key) for key in SHARED} if old else asked
        changed = [k for k in SHARED if k in stored and stored[k] != now[k]]
        differing = [k for k in changed if not _only_horizons_differ(k, stored[k], now[k])]
        if differing and any(self.home.glob("*/*.npz")):
            details = "; ".join(difference(key, stored[key], now[key]) for key in differing)
            what = f"{self.home.parent} holds another run ({', '.join(differing)} differ: {details})"
            replace = "replace it (`jaxbandits run --fresh`; from Python, delete it)"
            raise ValueError(f"{what}: choose another directory, or {replace}")
        if stored and (old or written["schema"] < KEYS) and any(self.home.glob("*/*.npz")):
            older = f"{self.home.parent}: its chunks were made by an older release, which named them otherwise"
            text = f"{older}: they are left alone, and everything is computed anew beside them"
            warnings.warn(text, UserWarning, stacklevel=2)
        if stored != asked or written.get("schema") != KEYS:
            content = {"config": asked, "schema": KEYS}
            self.write_file(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())

    def chunks(self, keys: Iterable[str]) -> dict[str, list[Chunk]]:
        """The files of these keys, by their names alone, sorted by seed. Files that no store wrote are set aside."""
        wanted: dict[str, list[Chunk]] = {key: [] for key in keys}
        for folder in {key[:2] for key in wanted}:
            with contextlib.suppress(FileNotFoundError):
                for entry in os.scandir(self.home / folder):
                    match = _NAME.fullmatch(entry.name)
                    if match and match[1] in wanted:
                        wanted[match[1]].append(Chunk(int(match[2]), int(match[3]), match[1], Path(entry.path)))
                    elif not match and entry.name.endswith(".npz"):
                        self.set_aside(Path(entry.path), "not a chunk's name")
        for files in wanted.values():
            files.sort()
        return wanted

    def read(self, chunk: Chunk, shapes: dict[str, tuple[int, ...]]) -> Arrays | None:
        """A chunk's arrays, of these shapes after the axis of seeds; None where it is damaged and set aside."""
        try:
            about, arrays = unpack(chunk.path)
            if about != {"key": chunk.key, "first": chunk.first}:
                raise Damaged("it holds another chunk")
            lanes = chunk.stop - chunk.first
            if {name: x.shape for name, x in arrays.items()} != {n: (lanes, *shape) for n, shape in shapes.items()}:
                raise Damaged("it holds other arrays")
        except FileNotFoundError:
            return None
        except Damaged as error:
            self.set_aside(chunk.path, str(error))
            return None
        return arrays

    def write(self, key: str, first: int, arrays: Arrays) -> None:
        """Write the results of a cell for the seeds from `first` on. Every array has the seeds as its first axis."""
        stop = first + len(next(iter(arrays.values())))
        path = self.home / key[:2] / f"{key}.{first}-{stop}.npz"
        path.parent.mkdir(exist_ok=True)
        self.write_file(path, pack({"key": key, "first": first}, arrays))

    def set_aside(self, path: Path, why: str) -> None:
        """Rename a file to `.bad` and warn. `Unreadable` where that fails: the file would be met again for ever."""
        try:
            path.replace(path.with_name(f"{path.name}.bad"))
        except FileNotFoundError:  # another process was faster
            pass
        except OSError as error:
            reason = f"{path} is damaged ({why}) and cannot be set aside ({os.strerror(error.errno or 0)})"
            advice = "delete it, or make its folder writable, and run it again"
            raise Unreadable(error.errno, f"{reason}: {advice}") from None
        self.reported.append(f"{path.relative_to(self.home.parent)}: {why}")
        warnings.warn(f"set aside {self.reported[-1]}", RuntimeWarning, stacklevel=2)

    # ---- unfinished calls

    def keep_begun(self, begun: BegunCall, leaves: Sequence[Any]) -> None:
        """Save where an unfinished call stands and its lanes' arrays, in place of an earlier save."""
        arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
        self.write_file(self._path_of_begun(begun), pack(begun._asdict(), arrays))

    def all_begun(self) -> Iterator[BegunCall]:
        """Every unfinished call, without its lanes."""
        for path in sorted((self.home / "begun").glob("*.npz")):
            try:
                with np.load(path) as file:
                    about = json.loads(str(file["about"]))
                about.pop("sha256")
                begun = BegunCall(**(about | {"keys": tuple(about["keys"])}))
                if path != self._path_of_begun(begun):
                    raise Damaged("it holds another call")
            except FileNotFoundError:
                continue
            except Exception as error:
                self.set_aside(path, f"not one of ours, or cut off ({error})")
            else:
                yield begun

    def read_begun(self, call: Any) -> tuple[BegunCall, list[np.ndarray[Any, Any]]] | None:
        """Where this very call stands and its lanes, if it was begun."""
        path = self._path_of_begun(call)
        try:
            about, arrays = unpack(path)
            begun = BegunCall(**(about | {"keys": tuple(about["keys"])}))
            return begun, [arrays[f"leaf{i}"] for i in range(len(arrays))]
        except FileNotFoundError:
            return None
        except (Damaged, KeyError, TypeError) as error:
            self.set_aside(path, str(error))
            return None

    def forget_begun(self, call: Any) -> None:
        """Delete what was saved of a call, which is finished."""
        self._path_of_begun(call).unlink(missing_ok=True)

    def _path_of_begun(self, call: Any) -> Path:
        name = hashlib.sha256(repr((call.keys, call.first, call.lanes, call.seeds)).encode()).hexdigest()
        return self.home / "begun" / f"{name}.npz"

    def write_file(self, path: Path, content: bytes) -> None:
        """Write a file so that it is there whole or not at all."""
        write_whole(path, content, "and run it again, everything finished is kept")


def write_whole(path: Path, content: bytes, advice: str) -> None:
    """Write a file so that it is there whole or not at all. advice: the last words of an error."""
    path = Path(os.path.realpath(path))  # what a link leads to is written, and not the link
    part = path.with_name(f".{uuid.uuid4().hex[:12]}.part")  # no longer than a name may be
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        reason = f"cannot write {path} ({error.strerror})"
        raise OSError(error.errno, f"{reason}: {remedy(error)} {advice}") from None
    with contextlib.suppress(OSError):  # sync the name itself; not every file system can
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remedy(error: Exception) -> str:
    """What a user can do about an error of writing. The text of HDF5's errors contains the system's."""
    room = (errno.ENOSPC, errno.EDQUOT)
    full = getattr(error, "errno", None) in room or any(os.strerror(number) in str(error) for number in room)
    return "make room" if full else "see to the disk"


def _only_horizons_differ(key: str, stored: object, asked: object) -> bool:
    """Whether only the list of horizons became longer or shorter: it is an axis, and axes may grow and shrink."""
    old, new = (set(x if isinstance(x, list) else [x]) for x in (stored, asked)) if key == "horizon" else ({0}, {1})
    return old <= new or old >= new


# ---- files that carry a digest of what they hold: flipped bits and files cut off are noticed when read


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
        with np.load(io.BytesIO(content)) as file:
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
