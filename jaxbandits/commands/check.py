"""`jaxbandits check module:factory`."""

from functools import partial

from jaxbandits.checking.check import check, look_up_part
from jaxbandits.sweeps.arguments import here_first
from jaxbandits.sweeps.toml_file import read_settings

EXIT_FOUND = 1


def run(given) -> int:
    """Print what was found; 0 where that is nothing, 1 otherwise. ValueError where the part cannot be loaded."""
    here_first()
    settings = read_settings(given.set)
    algorithm = partial(look_up_part("algorithm", given.algorithm), **settings) if settings else given.algorithm
    result = check(algorithm, given.environment, audit=given.audit)
    print(result)
    return 0 if result.passed else EXIT_FOUND
