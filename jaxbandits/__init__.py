"""Batched simulation of private and robust bandits in JAX.

Each public name is loaded when it is first used, so that `import jaxbandits` costs little more than `import jax`. Type
checkers and editors read them, with their arguments, in `__init__.pyi`, which `python -m jaxbandits.stubs` writes.
"""

from jaxbandits.forks import note_forks
from jaxbandits.names import load_lazily
from jaxbandits.version import __version__

note_forks()

__getattr__, __dir__, __all__ = load_lazily(
    __name__,
    submodules=[
        "adversaries",
        "algorithms",
        "auditing",
        "checking",
        "environments",
        "estimators",
        "learners",
        "mechanisms",
        "privacy",
        "theory",
    ],
    submod_attrs={
        "agents": ["Agent", "agent", "load_agent"],
        "auditing": ["audit"],
        "checking": ["check"],
        "checking.pairs": ["plays"],
        "contract": ["ContractError"],
        "environments.labelled_rows": ["read_labelled", "read_losses", "read_table"],
        "environments.logs": ["read_logged"],
        "joining": ["concat"],
        "off_policy": ["Offline", "Policy", "offline", "trained"],
        "reports": ["plot"],
        "reports.page": ["report"],
        "searching": ["Tuning", "WorstCase", "tune", "worst_case"],
        "statistics": ["compare", "decisions", "slope", "summary", "table"],
        "strangers": ["StrangerError", "foreign"],
        "sweeps": ["SweepError", "cores", "load", "save", "simulate", "sweep", "until"],
    },
)
__all__ = [*__all__, "__version__"]
