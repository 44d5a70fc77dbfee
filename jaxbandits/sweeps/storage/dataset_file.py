"""A Dataset as a file: netCDF, or zarr for object stores and dask."""

import contextlib
import io
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.formatting import show
from jaxbandits.validation import declare, path_of

if TYPE_CHECKING:
    import xarray as xr


SCHEMA_VERSION = 1  # the version of a Dataset's names and attributes
RESULTS, CHUNKS = "results.nc", "chunks"  # the result and the folder of chunks in a run's directory
LAZY_BYTES = 1 << 30  # the values of a larger Dataset are read when they are asked for


@declare(check=False)
def load(directory: str | os.PathLike[str]) -> "xr.Dataset":
    """Read the Dataset of a run's directory, or of one netCDF or zarr file.

    Args:
        directory (str or path): The directory of a finished `jaxbandits run` or of a sweep's `store`, a `.nc` file or a
            `.zarr` directory.

    Returns:
        xarray.Dataset: What `sweep` returned. Above one GiB its values are read when they are asked for.

    Raises:
        ValueError: There is no finished result, it cannot be read, or a later release wrote it.
        TypeError: `directory` is neither text nor a path.

    >>> import jaxbandits as jb, tempfile, xarray as xr
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = jb.save(xr.Dataset({"regret": ("t", [0.5, 1.0])}), f"{directory}/run.nc")
    ...     float(jb.load(path).regret[-1])
    1.0
    """
    import xarray as xr

    path = path_of(directory, "load: path")
    zarr = _is_zarr(path)
    if path.is_dir() and not zarr:
        unfinished, path = (path / CHUNKS).is_dir(), path / RESULTS
        if not path.is_file():
            if unfinished:
                begun = f"a run was begun there, whole or in shards, and its {RESULTS} is not written yet"
                again = f"`jaxbandits run FILE --out {directory}`, or the same jb.sweep"
                rest = "computes what is left, if anything, and puts all together"
                raise ValueError(f"{directory}: {begun}: {again}, {rest}")
            raise ValueError(f"{directory}: no {RESULTS} there: give the directory of a finished `jaxbandits run`")
    if not path.exists():
        raise ValueError(f"{directory}: no such file: give a directory of `jaxbandits run`, a .nc or a .zarr")
    if zarr:
        _refuse_pickles(path)
    try:
        ds = xr.open_dataset(path, engine="zarr" if zarr else "h5netcdf")
    except OSError as error:
        raise ValueError(f"{path}: not a readable result ({error}): run it again, or take another copy") from None
    schema = ds.attrs.get("schema_version", SCHEMA_VERSION)
    if np.ndim(schema) == 0 and np.asarray(schema).dtype.kind in "iu" and int(schema) > SCHEMA_VERSION:
        ds.close()
        later = f"schema_version = {int(schema)} is of a later release, this one reads {SCHEMA_VERSION}"
        raise ValueError(f"{path}: {later}: upgrade jaxbandits")
    if ds.nbytes > LAZY_BYTES:
        return ds
    with ds:
        return ds.load()


def describe_missing(old: Path, new: Path) -> str:
    """What the first result holds and the second does not, in words; no points, which searches choose anew."""
    import xarray as xr

    try:
        with xr.open_dataset(old, engine="h5netcdf") as before, xr.open_dataset(new, engine="h5netcdf") as after:
            held, holds = ({d: ds[d].values.tolist() for d in ds.regret.dims if d != "t"} for ds in (before, after))
    except (OSError, ValueError, AttributeError):  # none, or damaged
        return ""
    if "point" in held or "point" in holds:
        return ""
    now = {d: set(holds.get(d, values)) for d, values in held.items()}
    gone = {d: [x for x in values if x not in now[d]] for d, values in held.items()}
    seeds = gone.pop("seed", [])
    words = [f"{len(seeds):,} of its {len(held['seed']):,} seeds"] if seeds else []
    words += [", ".join(map(str, gone.pop("algorithm", [])))]
    words += [f"{key} = {', '.join(map(str, values))}" for key, values in gone.items() if values]
    return "; ".join(filter(None, words))


@declare(check=False)
def save(ds: "xr.Dataset", path: str | os.PathLike[str]) -> Path:
    """Write a Dataset to a file; a reader never sees half of it.

    Args:
        ds (xarray.Dataset): What `sweep` or `load` returned.
        path (str or path): Where to write, ending in `.nc` (netCDF) or `.zarr` (zarr; needs the extra `export`). An
            earlier export there is replaced.

    Returns:
        pathlib.Path: The path.

    Raises:
        ValueError: The path has another ending, or holds something that is no export.
        TypeError: `ds` is no Dataset, or `path` neither text nor a path.
        OSError: It cannot be written to the end, as on a full disk. What was there before is still there.

    Note:
        It is written under a temporary name beside the path, then renamed.

    >>> import jaxbandits as jb, tempfile, xarray as xr
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     jb.save(xr.Dataset({"regret": ("t", [0.5, 1.0])}), f"{directory}/run.nc").name
    'run.nc'
    """
    import xarray as xr

    if not isinstance(ds, xr.Dataset):
        what = f"a DataArray ({ds.name})" if isinstance(ds, xr.DataArray) else show(ds)
        raise TypeError(f"save: ds is {what}; give the Dataset that jb.sweep or jb.load returns, then the path")
    path = path_of(path, "save: path")
    if path.suffix not in (".nc", ".zarr"):
        tables = "jb.summary(ds).to_csv(path)"
        raise ValueError(f"{path}: a result is saved as .nc (netCDF) or .zarr: end the name so; tables of it: {tables}")
    if path.exists() and not _is_export(path):
        raise ValueError(f"{path}: not a result that could be replaced: choose another name")
    given, path = path, Path(os.path.realpath(path))  # what a link leads to is replaced, and not the link
    part, old = (path.with_name(f".{uuid.uuid4().hex[:12]}.{kind}") for kind in ("part", "old"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if given.suffix == ".zarr":
            _to_zarr(ds, part)
            if path.exists():  # a directory cannot be renamed over another
                os.replace(path, old)
        else:
            import h5netcdf

            with NetcdfFile(part, "x+") as content, h5netcdf.File(content, "w") as file:
                later = any(variable.chunks for variable in ds.variables.values())  # dask would write it afterwards
                (ds.compute() if later else ds).dump_to_store(xr.backends.H5NetCDFStore(file))
        os.replace(part, path)
    except OSError as error:
        there = Path(error.filename or "/")
        if not (error.filename and (there.is_relative_to(path.parent) or path.is_relative_to(there))):
            raise  # it says by itself what to do, or something else cannot be read
        why = f"cannot be written ({error.strerror}): choose another place"
        raise OSError(error.errno, f"save: path = {str(given)!r} {why}") from None
    finally:
        if old.exists() and not path.exists():
            os.replace(old, path)
        with contextlib.suppress(OSError):  # where nothing could be written there is nothing to delete
            for left in (part, old):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    return given


class NetcdfFile(io.FileIO):
    """A new file for HDF5, which takes the process with it where it cannot write: errors are raised at the end."""

    failed: BaseException | None = None  # a Ctrl-C, too: HDF5 would go on, and say something else

    def write(self, content: Any) -> int:
        rest, done = memoryview(content).cast("B"), 0
        with self.hold_error():
            while done < len(rest):
                done += super().write(rest[done:])
        return len(rest)

    def truncate(self, size: int | None = None) -> int:
        with self.hold_error():
            super().truncate(size)
        return size or 0

    @contextlib.contextmanager
    def hold_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.failed = self.failed or error

    def __exit__(self, *raised: object) -> None:
        self.close()
        if isinstance(self.failed, OSError):
            raise OSError(self.failed.errno, f"cannot write ({self.failed.strerror}): make room or choose another disk")
        if self.failed:
            raise self.failed


def _is_export(path: Path) -> bool:
    if path.is_dir():
        return _is_zarr(path)
    with open(path, "rb") as file:
        return file.read(8) == b"\x89HDF\r\n\x1a\n"


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and ((path / "zarr.json").is_file() or (path / ".zgroup").is_file())


def _refuse_pickles(path: Path) -> None:
    """ValueError where a zarr directory asks for pickles to be read, which `save` never writes: they run code."""

    def asks_for_pickle(x: object) -> bool:
        if isinstance(x, dict) and any(x.get(key) in ("pickle", "numcodecs.pickle") for key in ("id", "name")):
            return True
        inside = x.values() if isinstance(x, dict) else x if isinstance(x, list) else ()
        return any(map(asks_for_pickle, inside))

    for name in (".zarray", ".zmetadata", "zarr.json"):
        for file in path.rglob(name):
            try:
                found = asks_for_pickle(json.loads(file.read_text(encoding="utf-8")))
            except ValueError:  # zarr says what is wrong with it
                continue
            if found:
                pickled = f"{file.relative_to(path)} asks for a pickle, which may run any code: not read"
                raise ValueError(f"{path}: {pickled}")


def slabs(array: "xr.DataArray", max_bytes: int = 1 << 26) -> Iterator[np.ndarray[Any, Any]]:
    """The values in order, in pieces of at most about `max_bytes` bytes: a large array stays on disk."""
    if array.nbytes <= max_bytes or array.ndim == 0:
        yield array.values
    elif (row := array.nbytes // len(array)) > max_bytes:
        for i in range(len(array)):
            yield from slabs(array[i], max_bytes)
    else:
        rows = max_bytes // row
        for i in range(0, len(array), rows):
            yield array[i : i + rows].values


def _to_zarr(ds: "xr.Dataset", path: Path) -> None:
    """Write one algorithm at a time, so that a Dataset larger than memory can be written."""
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ValueError("zarr is not installed: pip install 'jaxbandits[export]'") from None
    # format 2: its text is specified, that of format 3 is not yet
    if "algorithm" not in ds.dims or ds.nbytes <= LAZY_BYTES:
        ds.load().to_zarr(path, mode="w", zarr_format=2)
        return
    ds.isel(algorithm=[0]).load().to_zarr(path, mode="w", zarr_format=2)
    for i in range(1, ds.sizes["algorithm"]):
        ds.isel(algorithm=[i]).load().to_zarr(path, append_dim="algorithm", zarr_format=2)
