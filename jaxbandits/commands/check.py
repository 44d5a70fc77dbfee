"""`jaxbandits check module:factory`."""

from jaxbandits.checking.check import check
from jaxbandits.sweeps.arguments import here_first

EXIT_FOUND = 1


def run(given) -> int:
    """Print what was found; 0 where that is nothing, 1 otherwise. ValueError where the part cannot be loaded."""
    here_first()
    result = check(given.algorithm, given.environment, audit=given.audit)
    print(result)
    return 0 if result.passed else EXIT_FOUND
