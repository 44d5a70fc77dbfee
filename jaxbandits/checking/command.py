"""`jaxbandits check module:factory`."""

from jaxbandits.checking.check import check
from jaxbandits.checking.lookup import here_first

EXIT_FOUND = 1


def add_to(commands) -> None:
    """The sub-command's options."""
    checking = commands.add_parser("check", help="say what breaks the contract of an algorithm of your own")
    checking.add_argument(
        "algorithm", metavar="MODULE:FACTORY", help="where it can be imported; or a name of the package"
    )
    checking.add_argument(
        "--environment", metavar="NAME", help="a name of the package, or MODULE:FACTORY (default: one that fits)"
    )
    checking.add_argument("--audit", action="store_true", help="also audit a private algorithm's claim")


def run(given) -> int:
    """Print what was found; 0 where that is nothing, 1 otherwise. ValueError where the part cannot be imported."""
    here_first()
    result = check(given.algorithm, given.environment, audit=given.audit)
    print(result)
    return 0 if result.passed else EXIT_FOUND
