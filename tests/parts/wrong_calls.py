"""What the rows of `wrong_calls.toml` are evaluated with, and what is asked of the error that each of them raises."""

# ruff: noqa: F401 (rows use these names)

import contextlib
import importlib
import io
import itertools
import math
import tempfile
import tomllib
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import xarray as xr

import jaxbandits as jb
from jaxbandits import catalogue, estimators, mechanisms, theory
from jaxbandits.auditing import Edit
from jaxbandits.cli import main
from jaxbandits.environments.logs import Log
from jaxbandits.names import UnknownName
from jaxbandits.papers.study import Claim, Exact, Interval, judge_claim
from jaxbandits.protocol import Adversary, Algorithm, Attack, Guarantee, Program, Span
from jaxbandits.searching import methods
from jaxbandits.searching.space import dimensions_of
from jaxbandits.sweeps.simulate import algorithm_for
from jaxbandits.validation import factory

A, E, V, L = jb.algorithms, jb.environments, jb.adversaries, jb.learners
KINDS = {"TypeError": TypeError, "AttributeError": UnknownName}
LONGEST = 320  # characters of a message at most
WRONG_CALLS = Path(__file__).with_suffix(".toml")


class Row(NamedTuple):
    """A wrong call: where it stands, the expression, the exception's type, and texts that the message holds."""

    name: str
    call: str
    kind: type
    texts: list


def rows() -> list[Row]:
    """The rows of the file."""
    found = []
    for section, table in tomllib.loads(WRONG_CALLS.read_text()).items():
        whole = table.pop("call", None)
        for name, (*content,) in table.items():
            call = content.pop(0) if whole is None else whole.replace("{}", name, 1)
            kind = KINDS.get(content[0], ValueError)
            found.append(Row(f"{section} | {name}", call, kind, content[content[0] in KINDS :]))
    return found


def fault(row: Row) -> str | None:
    """What is wrong with the error of a row's call, None where nothing is."""
    return fault_of(lambda: eval(row.call, dict(globals())), row.kind, row.texts)


def fault_of(call, kind: type, texts) -> str | None:
    """What is wrong with the error of a call, None where nothing is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # nothing is announced before what cannot be
            returned = call()
    except Exception as error:
        message = str(error)
        if type(error) is not kind:
            return f"a {type(error).__name__} in place of a {kind.__name__}: {message}"
        if "\n" in message or len(message) > LONGEST:
            return f"more than one line of {LONGEST} characters: {message}"
        place = 0
        for text in texts:
            place = message.find(text, place)
            if place < 0:
                return f"no {text!r}, or not in this order: {message}"
        return None
    return f"no error: it returns {returned!r}"


# ---- results and tables without a sweep

ARMS = E.bernoulli_arms(means=[0.2, 0.8])
REPORTED = A.ldp_ucb(num_arms=2, horizon=40, epsilon=1.0)
ECHO = Edit(1, 0.0, otherwise=1.0, rule="echo")
TWO = partial(E.bernoulli_arms, means=[0.2, 0.8])


def sweep(algorithms="ucb1", environment=ARMS, **changes):
    settings = {"horizon": 32, "seeds": 8, "checkpoints": 4, "progress": False}
    return jb.sweep(algorithms, environment, **settings | changes)


def result(algorithms=("one", "two"), epsilon=(0.1, 1.0), seeds=4, times=(1, 2, 4, 8, 16)):
    """A sweep's Dataset without a sweep."""
    dims = ("algorithm", "epsilon", "seed", "t")
    shape = (len(algorithms), len(epsilon), seeds, len(times))
    regret = np.sqrt(np.array(times)) * (1 + np.random.default_rng(0).random(shape))
    coords = {"algorithm": list(algorithms), "epsilon": list(epsilon), "seed": range(seeds), "t": list(times)}
    variables = {"regret": (dims, regret), "nonfinite_rewards": (dims[:-1], np.zeros(shape[:-1]))}
    return xr.Dataset(variables, coords, {"schema_version": 1})


DS = result()
CLICKS = jb.read_logged(
    pd.DataFrame({"x": [0.1, 0.2, 0.5, 0.7] * 5, "ad": ["red", "green"] * 10, "click": [0, 1, 1, 0] * 5}),
    arm="ad", reward="click", propensity="uniform",
)  # fmt: skip
PLAIN = DS.isel(epsilon=0, drop=True)
WINDOWS = DS.expand_dims({"window": range(1, 8)}, axis=2)  # a grid of two keys
FEW_CELLS = pd.DataFrame({"a": [0, 1], "b": [1, 1], "value": [1.0, 300.0]})
MANY_CELLS = pd.DataFrame({"a": range(12), "b": 1, "value": range(12), "hole": np.inf})
COLUMNS = {"width": [1.5, 0.5, 2.0, 3.0], "kind": ["rose", "iris", "rose", "iris"], "count": [1, 2, 3, 9]}
FRAME = pd.DataFrame(COLUMNS, index=list("abcd"))
FEATURES = np.random.default_rng(0).normal(size=(60, 3))
LABELS = np.arange(60) % 3
LOG = Log(FRAME[["count"]].to_numpy(), np.array([0, 1, 0, 1]), FRAME["width"].to_numpy(), None, ("a", "b"), ("count",))
POINTS = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


class Classifier:
    """A model that tells classes apart."""

    def fit(self, x, y):
        return self

    def predict_proba(self, x):
        return np.full((len(x), 2), 0.5)


def without_kind(frame):
    """A frame as features and labels of a classification."""
    return {"features": frame.drop(columns="kind"), "labels": frame["kind"]}


def losses_of(text, read=jb.read_losses):
    """Read a table of losses, or labelled rows, that holds the text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "losses.csv").write_text(text)
        return read(Path(folder) / "losses.csv")


# ---- factories of a user's own


def returns_a_number(*, num_arms, horizon):
    return 3


def fails(*, num_arms, horizon):
    return {}["missing"]


def no_environment(*, size=3):
    return size


def of_its_horizon(*, num_arms, horizon, slots=1) -> Algorithm:
    """An algorithm whose state is as long as the run, in windows of some plays."""

    def init(params, draws):
        return jnp.zeros(horizon)

    return Algorithm(Program(init, init, init, init), (Span(slots, horizon),), 1.0, Guarantee(), ("x", 1, ()), {})


def nothing(*_):
    return ()


@factory
def one_arm(*, num_arms, horizon, model="none") -> Algorithm:
    """A base of another program than any of the package's, of a model of privacy."""
    guarantee = Guarantee() if model == "none" else Guarantee(model, "user", scales=("mechanism_scale",))
    program = Program(nothing, nothing, nothing, nothing)
    return Algorithm(program, (Span(1, horizon),), (), guarantee, ("one_arm", 1, ()), {})


@factory
def demanding(*, low: float = 0.0, high: float = 1.0) -> Adversary:
    """An adversary whose arguments must be in order."""
    if low >= high:
        raise ValueError(f"low = {low} must be below high = {high}: lower it")
    return V.huber(corruption=0.1, value=low)


def own_attack(size):
    """An adversary whose argument has no default."""
    return Adversary(Attack(nothing, nothing), float(size), None, {})


GROWING = optax.GradientTransformation(lambda x: x, lambda g, state, x=None: (g, (state, state)))
SHORTER = optax.GradientTransformation(lambda x: (), lambda g, state, x=None: (g[:1], state))


# ---- searches that must not begin


def it_runs(*_, **__):
    raise AssertionError("it runs")


BATCHED = partial(A.private_batched, base=partial(A.exp3, mixing=0.05))
LOSSES = partial(E.fixed_gap_losses, num_arms=3)
RATES = [0.001, 0.1, 5.0]


def tune(**changes):
    """A search for a learning rate of EXP3 on two privacy levels."""
    given = {
        "algorithms": {"EXP3": BATCHED}, "environment": LOSSES, "over": {"epsilon": [1.0, 0.1]},
        "space": {"base.learning_rate": RATES}, "horizon": 60, "seeds": range(100, 108), "report_seeds": 12,
        "checkpoints": 2, "progress": False,
    }  # fmt: skip
    with mock.patch.dict(jb.tune.__globals__, evaluate=it_runs):
        return jb.tune(**given | changes)


def worst_case(**changes):
    """A search for the worst value of rewards that are replaced."""
    given = {
        "algorithm": "ucb1", "environment": TWO, "adversary": partial(V.huber, corruption=0.05),
        "space": {"value": (-10.0, 10.0)}, "trials": 18, "horizon": 60, "seeds": 16, "report_seeds": range(100, 132),
        "progress": False,
    }  # fmt: skip
    with mock.patch.object(methods, "by_generations", it_runs):
        return jb.worst_case(**given | changes)


# ---- files of the command line

RUN = """
horizon = 32
seeds = 8
checkpoints = 4
[environment]
name = "bernoulli_arms"
means = [0.2, 0.8]
[[algorithm]]
name = "ucb1"
[[algorithm]]
name = "ldp_ucb"
[grid]
epsilon = [0.5, 1.0]
"""
RUN_OF_BASES = """
horizon = 60
seeds = 16
checkpoints = 10
[environment]
name = "bernoulli_losses"
means = [0.3, 0.5, 0.6]
[[algorithm]]
name = "private_batched"
base = "htinf"
[[algorithm]]
name = "private_batched"
label = "exp3"
base = { name = "exp3", learning_rate = 0.02, mixing = 0.05 }
[grid]
epsilon = [0.1, 0.5]
"""
MODULE_NUMBERS = itertools.count()  # a module is imported once under its name


def changed(old, new, text=RUN):
    """The text of a file where something stands in place of what stood there."""
    assert old in text, old
    return text.replace(old, new)


def run(content, beside=None):
    """`jaxbandits run` of a file of text or bytes, with other files beside it: what it says is raised."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as stderr:
        for name, text in {"run.toml": content, **(beside or {})}.items():
            (Path(folder) / name).write_bytes(text.encode() if isinstance(text, str) else text)
        code = main(["run", str(Path(folder) / "run.toml"), "--out", str(Path(folder) / "out"), "--quiet"])
        assert code == 2, f"exit code {code}: {stderr.getvalue()}"
        assert not (Path(folder) / "out").exists()
    message = stderr.getvalue()
    assert message.startswith("jaxbandits: ") and message.endswith("\n"), message
    said, *_ = message.removeprefix("jaxbandits: ").removesuffix("\n").split("; known: ")  # a list of all names follows
    raise ValueError(said)


def run_module(content):
    """`jaxbandits run` of a file whose algorithm is `made` of a module beside it."""
    name = f"wrong_module_{next(MODULE_NUMBERS)}"
    importlib.invalidate_caches()
    return run(changed('name = "ucb1"', f'name = "{name}:made"'), {f"{name}.py": f"{content}\n"})
