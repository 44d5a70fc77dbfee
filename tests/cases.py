"""The catalogue's cases in tests: each is traced once and played once, for every test that looks at it.

Tests of one case run in one process, one after the other: a parameter `name` or `case` that is a case of the catalogue,
in a file of `FILES`, puts a test into that case's group. Every other file is a group of its own. What a case computed
is kept until the process goes on to the next one.
"""

import functools
import os

import jax
import pytest
from dealt import its_turn

FILES = ("test_contract.py", "test_pins.py", "test_lane_proof.py", "test_reward_ranges.py", "test_long_horizons.py")
SEEDS = 32  # lanes of a case that is played, in one call
# Files that take longest: the others are dealt to what is idle after them.
LONG_FILES = ("test_docs.py", "test_notebooks.py", "test_papers.py", "test_examples.py", "test_audit.py")
_subjects: dict = {}
# windows of one play, of several, of a whole span, of several agents, and conversions of others
KINDS = ("ucb1", "private_batched", "successive_elimination", "byzantine_ucb", "doubling")
ONE_IN = 4


def case_of(item) -> str | None:
    """The case that a test is about."""
    from jaxbandits import catalogue

    if item.path.name in FILES and hasattr(item, "callspec"):
        names = [item.callspec.params.get(key) for key in ("name", "case")]
        return next((name for name in names if isinstance(name, str) and name in catalogue.EVERYTHING), None)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    places = {}
    for item in items:
        case = case_of(item)
        group = item.path.name if case is None else f"case {case}"
        places.setdefault(group, (not group.endswith(LONG_FILES), len(places)))
        item.add_marker(pytest.mark.xdist_group(group))
        item.group = group
        # examples of docstrings are pages, but where a change of their module is tested at once (quick.py)
        if not isinstance(item, pytest.Function) and item.config.change is None:
            item.add_marker(pytest.mark.pages)
    items.sort(key=lambda item: places[item.group])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    """Groups reach pytest-xdist as a part of a test's name: without it each test would be alone, and nobody told."""
    if node.config.option.dist == "loadgroup" and not all("@" in name for name in ids):
        pytest.exit("this pytest hides the groups of tests from pytest-xdist: install one below 9.2", returncode=4)


# Where the arguments of a call's functions have the axis of the lanes.
AXES = {"begin": (None, 0), "advance": (None, 0, 0, None, None), "close": (None, 0, 0), "finish": (None, 0)}


def programs_of(subject) -> dict:
    """The traced programs of a call of a case over `SEEDS` lanes: {name: (closed jaxpr, axis of lanes of each input)}.

    They are what `subject.play_seeds` compiles: JAX keeps their traces.
    """
    from jaxbandits.sweeps.compilation.settings import settings_of
    from jaxbandits.sweeps.engines.calls import Call
    from jaxbandits.sweeps.engines.one_call import Player, programs_of_calls

    device, laid_out = jax.local_devices()[0], untraced(subject.current)
    call = Call(0, (0,), 0, SEEDS, SEEDS)
    with settings_of(laid_out.dtype, device):
        programs = programs_of_calls(laid_out, 0, (0,), device)

        def trace(function, _, *given, kind=None):
            return function, given, programs.run.functions[function].trace(*[kind] * (kind is not None), *given)

        player = Player(call, laid_out, device, programs, trace)
        begin = player.begin()
        found = {str(name): traced() for name, traced in player.others(begin[2].out_info).items()}
        found["begin"] = begin
    return {
        name: (traced.jaxpr, [axis for x, axis in zip(given, AXES[function], strict=True) for _ in jax.tree.leaves(x)])
        for name, (function, given, traced) in found.items()
    }


def untraced(laid_out):
    """A plan whose functions are asked themselves, and not the traces of them: operations then say where they stand."""
    return laid_out._replace(groups=[g._replace(parts=g.parts._replace(traces=None)) for g in laid_out.groups])


@pytest.fixture
def subject(name):
    """The case `name`, with what was traced and played of it so far."""
    from jaxbandits import catalogue
    from jaxbandits.checking.subject import Subject

    if name not in _subjects:
        _subjects.clear()
        example = catalogue.EVERYTHING[name]
        _subjects[name] = Subject(
            example.algorithm, example.environment, example.reward_adversary, example.message_adversary,
            horizon=example.horizon, seeds=SEEDS, lanes=SEEDS,
        )  # fmt: skip
    return _subjects[name]


@pytest.fixture
def unless_pinned(request, subject, name):
    """Leaves out a case that computes what is pinned, but in one of `ONE_IN` commits and for cases of every kind.

    Its program has been looked at. Anything new, and every program under another JAX, is looked at each time.
    """
    every = request.config.getoption("exhaustive") or os.environ.get("PINS") == "write"
    if (
        not (every or its_turn(name, ONE_IN, int(os.environ["DEAL"])))
        and name not in KINDS
        and is_pinned(subject, name)
    ):
        pytest.skip(f"it computes what is pinned, and is looked at in one of {ONE_IN} commits")


@functools.lru_cache(maxsize=1)
def is_pinned(subject, name) -> bool:
    """Whether the key of a case is the one in tests/pinned.json."""
    import pins

    before = pins.pinned()
    then = before["cases"].get(name)
    return before["jax"] == jax.__version__ and then is not None and pins.identity(subject) == then["key"]
