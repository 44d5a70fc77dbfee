"""What a run's directory holds beside its results: summary.csv, pictures, provenance.json."""

import hashlib
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxbandits import formatting, statistics
from jaxbandits.reports import plot
from jaxbandits.reports.layout import SHAPES
from jaxbandits.selection import spread_places
from jaxbandits.sweeps.storage.dataset_file import RESULTS, slabs
from jaxbandits.sweeps.storage.store import write_whole


def clear_outputs(directory: Path, kept: Sequence[Path] = ()) -> None:
    """Remove what an earlier run wrote beside its results, but what is kept, and nothing else."""
    known = ["config.toml", "summary.csv", "decisions.csv", "provenance.json"]
    known += [f"{name}.{suffix}" for name in ("regret", "reward", "against_*") for suffix in ("png", "pdf", "svg")]
    for path in [p for pattern in known for p in directory.glob(pattern) if p not in kept]:
        path.unlink()


def prepare_directory(out: Path) -> None:
    """Make a directory to write to. ValueError where it cannot be written: said before the work, not after it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        why = f"cannot write there ({error.strerror})"
        raise ValueError(f"--out {out}: {why}: choose a directory that can be written") from None


def write_text(path: Path, text: str) -> None:
    """Write a table or the like, whole or not at all."""
    write_whole(path, text.encode(), "and run it again")


def stem_of(label: str, taken: dict[str, str] | None = None) -> str:
    """The name of a picture about a label: none that another label has, and one that file systems hold.

    taken: which label has which name so far, of all that are written together.

    >>> taken = {}
    >>> [stem_of(label, taken) for label in ("a b", "a b", "a-b")]
    ['a-b', 'a-b', 'a-b-d44362d6']
    """
    stem = re.sub(r"[^\w.]+", "-", label)
    alone = stem == label if taken is None else taken.setdefault(stem.casefold(), label) == label
    if not alone or len(stem.encode()) > 200:  # of 255 bytes
        short = stem.encode()[:180].decode(errors="ignore")
        stem = f"{short}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
    return stem


def write_run(ds: xr.Dataset, directory: Path, *, seconds: float, lanes: int, **picture: Any) -> list[Path]:
    """Write the tables and pictures of a finished run beside its results; returns the paths written.

    picture: of `draw`.
    """
    written = [directory / "summary.csv", directory / "provenance.json"]
    texts = [
        formatting.csv(statistics.summary(ds)),
        json.dumps(provenance(ds, directory, seconds, lanes), indent=2) + "\n",
    ]
    if "decisions" in ds.attrs:
        written.append(directory / "decisions.csv")
        texts.append(formatting.csv(statistics.decisions(ds)))
    for path, text in zip(written, texts, strict=True):
        write_text(path, text)
    written += draw(ds, directory, **picture)
    clear_outputs(directory, [*written, directory / "config.toml"])  # of an earlier result
    return written


def describes(directory: Path, config: dict[str, Any], ds: xr.Dataset | None = None) -> bool:
    """Whether the provenance in a directory is of this configuration, and of the regret in `ds` where it is given.

    Workers may have computed other numbers for the same configuration, after an edit or with another release of JAX.
    """
    try:
        kept = json.loads((directory / "provenance.json").read_text())
        return kept["config"] == config and (ds is None or kept["sha256"]["regret"] == regret_digest(ds))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def config_of(directory: Path, config: dict[str, Any]) -> Path | None:
    """The `config.toml` of a directory, but where the provenance beside it is of another run than what lies there."""
    path, told = directory / "config.toml", (directory / "provenance.json").is_file()
    return path if path.is_file() and (not told or describes(directory, config)) else None


def draw(
    ds: xr.Dataset, directory: Path, *, formats: Sequence[str], figure: Mapping[str, Any] | None = None,
    caption: str = "",
) -> list[Path]:  # fmt: skip
    """Draw a run: regret against t, and final regret against the first numeric grid key (or `figure["against"]`).

    With `figure["reward"]` also the expected reward against t.
    """
    figure = dict(figure or {})
    axes = [d for d in ds.regret.dims if d not in ("algorithm", "seed", "t")]
    numeric = [d for d in axes if np.issubdtype(ds[d].dtype, np.number) and ds.sizes[d] > 1 and d != "point"]
    key = figure.get("against", numeric[0] if numeric else None)
    # other axes are shown at their first value; the caption of the picture says so
    long = [d for d in axes if ds.sizes[d] > 1]
    select = {d: ds[d].values[:1] for d in long if d != key}
    shown, text, max_panels = ds, caption, len(SHAPES)
    panels = key if len(long) > 1 else (long or [None])[0]
    if panels in long and ds.sizes[panels] > max_panels:
        shown = ds.isel({panels: spread_places(ds.sizes[panels], max_panels)})
        text = f"{max_panels} of {ds.sizes[panels]} values shown. {caption}".strip()
    dotted = figure.get("dotted", ())
    curves: dict[str, Any] = {"select": select if len(long) > 1 else None, "dotted": dotted, "caption": text}
    pictures = {"regret": plot.regret(shown, **curves)}
    if figure.get("reward"):
        pictures["reward"] = plot.reward(shown, **curves)
    if key is not None:
        name = stem_of(f"against_{key.replace('.', '_')}")
        pictures[name] = plot.against(ds, key, select=select, dotted=dotted, caption=caption)
    written = []
    for name, picture in pictures.items():
        for suffix in formats:
            written.append(directory / f"{name}.{suffix}")
            plot.save(picture, written[-1])
    return written


def provenance(ds: xr.Dataset, directory: Path, seconds: float, lanes: int) -> dict[str, Any]:
    """Versions, machine, command, time and digests: enough to run it again and to see whether it was."""
    with open(directory / RESULTS, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "versions": json.loads(ds.attrs["versions"]),
        "config": json.loads(ds.attrs["config"]),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 3),
        "lanes": lanes,
        "sha256": {RESULTS: digest, "regret": regret_digest(ds)},
    }


def regret_digest(ds: xr.Dataset) -> str:
    """The SHA-256 of regret, without what is written beside it."""
    digest = hashlib.sha256()
    for values in slabs(ds["regret"]):
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()
