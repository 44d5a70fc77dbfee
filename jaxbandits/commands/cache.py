"""`jaxbandits cache info|clear`: what this package keeps of its compiled programs."""

from jaxbandits.sweeps.compilation import executables
from jaxbandits.sweeps.compilation.compilation_cache import root


def run(given) -> int:
    """Print how much is kept and where, or delete it."""
    home = root()
    if home is None:
        print("compiled programs are kept nowhere: JAXBANDITS_CACHE=off")
        return 0
    if given.what == "clear":
        files, size = executables.prune(0)
        print(f"{files:,} files deleted, {_megabytes(size)} in {home}")
        return 0
    sizes = [about.st_size for _, about in executables.files_on_disk()]
    print(f"{len(sizes):,} files, {_megabytes(sum(sizes))} of at most {_megabytes(executables.LIMIT)} in {home}")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
