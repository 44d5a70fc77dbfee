"""The command line: `jaxbandits run FILE`, `list`, `plot DIR`. Bad input is one line and exit code 2."""

import argparse
import json
import sys
import time
from pathlib import Path

EXIT_BAD_INPUT, EXIT_INTERRUPTED = 2, 130


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="jaxbandits", description="Batched simulation of private and robust bandits.")
    commands = top.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a TOML file and write results, table and pictures")
    run.add_argument("file", metavar="FILE", type=Path)
    run.add_argument("--out", metavar="DIR", type=Path, help="where to write (default: runs/<name of FILE>)")
    run.add_argument("--seeds", metavar="N", type=int, help="seeds to run instead of the file's")
    run.add_argument("--engine", default="local", choices=["local"])
    run.add_argument("--format", default="png", metavar="png,pdf", help="picture formats: png, pdf, svg")
    run.add_argument("--fresh", action="store_true", help="replace what DIR holds")
    run.add_argument("--quiet", action="store_true", help="no progress bar")
    listing = commands.add_parser("list", help="list what is there")
    listing.add_argument("kind", nargs="?", choices=["algorithms", "environments", "adversaries"])
    drawing = commands.add_parser("plot", help="draw the pictures of a finished run again")
    drawing.add_argument("directory", metavar="DIR", type=Path)
    drawing.add_argument("--format", default="png", metavar="png,pdf")
    drawing.add_argument("--against", metavar="KEY", help="grid key on the horizontal axis")
    return top


def main(arguments=None) -> int:
    """Entry point; returns the exit code."""
    given = parser().parse_args(arguments)
    try:
        return {"run": run, "list": listing, "plot": draw}[given.command](given)
    except KeyboardInterrupt:
        print("interrupted: this release keeps nothing of an unfinished run", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (ValueError, TypeError, OSError) as error:
        print(f"jaxbandits: {' '.join(str(error).split())}", file=sys.stderr)
        return EXIT_BAD_INPUT


def formats(text: str) -> tuple[str, ...]:
    """png,pdf -> ("png", "pdf")."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    bad = [part for part in found if part not in ("png", "pdf", "svg")]
    if bad or not found:
        raise ValueError(f"--format {text}: give png, pdf or svg, separated by commas")
    return found


def run(given) -> int:
    """`jaxbandits run FILE`."""
    from jaxbandits import statistics
    from jaxbandits.reports import output
    from jaxbandits.sweeps.config import read_config
    from jaxbandits.sweeps.run import config_of, sweep

    wanted = formats(given.format)
    settings = read_config(given.file)
    figure, caption = settings.pop("figure", None), settings.pop("caption", "")
    if given.seeds is not None:
        settings["seeds"] = given.seeds
    _check_figure(figure, settings)
    directory = given.out or Path("runs") / given.file.stem
    config = config_of(settings["algorithms"], settings["environment"], **_whole(settings))
    if (directory / output.RESULTS).exists() and not given.fresh:
        ds = output.load(directory)
        differing = _differing(json.loads(ds.attrs["config"]), json.loads(json.dumps(config)))
        if differing:
            raise ValueError(
                f"{directory} holds another run ({', '.join(differing)} differ): choose another --out, or --fresh to replace it"
            )
        print(f"{directory} already holds this run")
        if any(not (directory / f"regret.{suffix}").exists() for suffix in wanted):
            output.draw(ds, directory, formats=wanted, figure=figure, caption=caption)
    else:
        began = time.perf_counter()
        ds = sweep(**settings, engine=given.engine, progress=not given.quiet and sys.stderr.isatty())
        seconds = time.perf_counter() - began
        if given.fresh:  # only now: a run that failed has replaced nothing
            output.clear(directory)
        output.write_run(
            ds, directory, config_text=given.file.read_text(), seconds=seconds, formats=wanted, figure=figure, caption=caption,
        )  # fmt: skip
        lanes = int(ds.regret.size // ds.sizes["t"])
        print(f"{lanes:,} lanes in {seconds:.1f} s, compilation included")
    print(statistics.table(ds))
    print(
        f"written to {directory}: {', '.join(sorted(p.name for p in directory.iterdir() if not p.name.startswith('.')))}"
    )
    return 0


def _check_figure(figure, settings: dict) -> None:
    """What the picture asks for is there: said before anything runs."""
    from jaxbandits.validation import nearest

    axes = [key[0] if isinstance(key, tuple) else key for key in settings.get("grid") or {}]
    axes += ["horizon"] if isinstance(settings["horizon"], list) else []
    key = (figure or {}).get("against")
    if key is not None and key not in axes:
        raise ValueError(
            f"figure.against = {key!r} is no axis of this run{nearest(key, axes)}: it has {', '.join(axes)}"
        )
    labels = list(settings["algorithms"])
    dotted = (figure or {}).get("dotted", ())
    for label in [*dotted, *(dotted.values() if isinstance(dotted, dict) else ())]:
        if label not in labels:
            raise ValueError(
                f"figure.dotted names {label!r}{nearest(label, labels)}: the algorithms are {', '.join(labels)}"
            )


def _whole(settings: dict) -> dict:
    """A sweep's settings with its defaults, as `config_of` records them."""
    from jaxbandits.sweeps.plan import _seeds

    seen = {
        "grid": None, "points": None, "dtype": "float32", "reward_adversary": None, "message_adversary": None,
        "checkpoints": 200, **settings,
    }  # fmt: skip
    seen["seeds"] = _seeds(seen["seeds"])
    return {k: v for k, v in seen.items() if k not in ("algorithms", "environment", "memory")}


def _differing(old: dict, new: dict) -> list[str]:
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def listing(given) -> int:
    """`jaxbandits list`: names and the first line of what they are."""
    import jaxbandits as jb

    kinds = [given.kind] if given.kind else ["algorithms", "environments", "adversaries"]
    for kind in kinds:
        module = getattr(jb, kind)
        print(f"{kind}:")
        for name in module.__all__:
            print(f"  {name:24s} {(getattr(module, name).__doc__ or '').strip().splitlines()[0]}")
    return 0


def draw(given) -> int:
    """`jaxbandits plot DIR`."""
    import tomllib

    from jaxbandits.reports import output

    ds = output.load(given.directory)
    kept = given.directory / "config.toml"
    settings = tomllib.loads(kept.read_text()) if kept.exists() else {}
    figure = dict(settings.get("figure", {}))
    if given.against:
        if given.against not in ds.regret.dims:
            raise ValueError(f"--against {given.against}: the run has no such axis; it has {', '.join(ds.regret.dims)}")
        figure["against"] = given.against
    paths = output.draw(
        ds, given.directory, formats=formats(given.format), figure=figure, caption=settings.get("caption", "")
    )
    print("\n".join(str(p) for p in paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
