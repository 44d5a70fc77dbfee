"""Wrong calls and configurations, as a table:
each ends in one line that names the argument, the value and the remedy.
"""

import functools
import inspect
import json
import re
import textwrap
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tqdm
import xarray as xr

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.cli import main
from jaxbandits.sweeps import free_space
from jaxbandits.sweeps.arguments import signature_of
from jaxbandits.sweeps.checkpoints import checkpoint_times
from jaxbandits.sweeps.plan import FILLED, plan

A, E, V = jb.algorithms, jb.environments, jb.adversaries
ARMS = E.bernoulli_arms(means=[0.2, 0.8])
TWO = partial(E.bernoulli_arms, means=[0.2, 0.8])
LENGTH = 320  # characters of a message at most


def sweep(algorithms="ucb1", environment=ARMS, **changes):
    return jb.sweep(
        algorithms, environment, **{"horizon": 32, "seeds": 8, "checkpoints": 4, "progress": False, **changes}
    )


def result(algorithms=("one", "two"), epsilon=(0.1, 1.0), seeds=4, times=(1, 2, 4, 8, 16)):
    """A sweep's Dataset without a sweep."""
    dims = ("algorithm", "epsilon", "seed", "t")
    shape = (len(algorithms), len(epsilon), seeds, len(times))
    regret = np.sqrt(np.array(times)) * (1 + np.random.default_rng(0).random(shape))
    coords = {"algorithm": list(algorithms), "epsilon": list(epsilon), "seed": range(seeds), "t": list(times)}
    return xr.Dataset(
        {"regret": (dims, regret), "nonfinite_rewards": (dims[:-1], np.zeros(shape[:-1]))},
        coords,
        {"schema_version": 1},
    )


DS = result()
PLAIN = DS.isel(epsilon=0, drop=True)


def checked(call, *fragments):
    """The error of a call: one of the two kinds, one line, not too long, and it holds the fragments."""
    with warnings.catch_warnings(), pytest.raises((ValueError, TypeError)) as caught:
        warnings.simplefilter("ignore")
        call()
    said = str(caught.value)
    assert "\n" not in said and len(said) <= LENGTH, said
    for fragment in fragments:
        assert fragment.lower() in said.lower(), (fragment, said)
    return said


def returns_a_number(*, num_arms, horizon):
    return 3


def fails(*, num_arms, horizon):
    return {}["missing"]


def no_environment(*, size=3):
    return size


class Stateful:
    """A callable object that is no factory's signature."""

    def __call__(self, *, num_arms, horizon):
        return A.ucb1(num_arms=num_arms, horizon=horizon)


SWEEPS = {
    # ---- algorithms
    "no algorithms": (lambda: sweep([]), "algorithms", "empty"),
    "an empty dict": (lambda: sweep({}), "algorithms", "empty"),
    "None": (lambda: sweep(None), "algorithms", "None", "jb.algorithms"),
    "a number": (lambda: sweep(3), "algorithms", "3", "jb.algorithms"),
    "a float": (lambda: sweep(0.5), "algorithms", "0.5"),
    "bytes": (lambda: sweep(b"ucb1"), "algorithms", "jb.algorithms"),
    "an array": (lambda: sweep(np.ones(3)), "algorithms"),
    "a module": (lambda: sweep(A), "algorithms", "jb.algorithms"),
    "None in a list": (lambda: sweep(["ucb1", None]), "algorithms", "None"),
    "None under a label": (lambda: sweep({"a": None}), "algorithms['a']", "None"),
    "an unknown name": (lambda: sweep("ucb"), "'ucb'", "ucb1"),
    "an unknown name in a list": (lambda: sweep(["ucb1", "exp4x"]), "exp4x", "exp4"),
    "a name of nothing": (lambda: sweep("zzz"), "zzz", "jb.algorithms"),
    "a module's function as a name": (lambda: sweep("my_module:f"), "my_module:f", "the function itself"),
    "an environment's name": (lambda: sweep("bernoulli_arms"), "bernoulli_arms", "environment",
        "algorithms come first"),
    "the name twice": (lambda: sweep(["ucb1", "ucb1"]), "ucb1", "labels"),
    "a name and its factory": (lambda: sweep(["ucb1", A.ucb1]), "ucb1", "labels"),
    "swapped": (lambda: sweep(ARMS, A.ucb1), "bernoulli_arms", "algorithms come first"),
    "swapped factories": (lambda: sweep(TWO, A.ucb1), "bernoulli_arms", "algorithms come first"),
    "swapped names": (lambda: sweep("bernoulli_arms", "ucb1"), "algorithms", "come first"),
    "an adversary": (lambda: sweep(V.huber), "huber", "adversary"),
    "a called adversary": (lambda: sweep(V.huber()), "huber", "adversary"),
    "already called": (lambda: sweep(A.ucb1(num_arms=2, horizon=32)), "algorithms", "ucb1", "partial"),
    "called in a list": (lambda: sweep([A.ucb1(num_arms=2, horizon=32)]), "algorithms", "already built", "partial"),
    "called under a label": (lambda: sweep({"a": A.ucb1(num_arms=2, horizon=32)}), "algorithms['a']", "already built"),
    "returns a number": (lambda: sweep(returns_a_number), "returns_a_number", "3", "Algorithm"),
    "raises KeyError": (lambda: sweep(fails), "fails", "KeyError", "missing"),
    "a builtin": (lambda: sweep(print), "print"),
    "a class": (lambda: sweep(dict), "dict"),
    "an unknown argument": (lambda: sweep(partial(A.ucb1, bonus=1.0)), "bonus", "bonus_scale"),
    "an argument of the wrong kind": (lambda: sweep(partial(A.ucb1, bonus_scale="x")), "bonus_scale", "'x'"),
    "positional": (lambda: sweep(partial(A.ucb1, 3)), "keyword"),
    "a missing argument": (lambda: sweep("ldp_ucb"), "epsilon", "functools.partial(jb.algorithms.ldp_ucb",
        "in the grid"),
    "two missing": (lambda: sweep("batched_exp4", "rotating_experts"), "needs"),
    "a label of NUL": (lambda: sweep({"a\0b": A.ucb1}), "label"),
    "half a character": (lambda: sweep({"\ud800": A.ucb1}), "label"),
    "a blank label": (lambda: sweep({"  ": A.ucb1}), "label"),
    "a number as label": (lambda: sweep({3: A.ucb1}), "label", "3"),
    "None as label": (lambda: sweep({None: A.ucb1}), "label", "None"),
    "a part's label": (lambda: sweep({"environment.x": A.ucb1}), "label", "environment.x"),
    "broken mathematics": (lambda: sweep({r"$\frac{1}$": A.ucb1}), "label", "mathematics"),
    "more broken mathematics": (lambda: sweep({"$x^{$": A.ucb1}), "label", "mathematics"),
    "unknown mathematics": (lambda: sweep({r"$\nosuchword$": A.ucb1}), "label", "mathematics"),
    # ---- what the environment does not have
    "no contexts": (lambda: sweep("linucb"), "linucb", "dim", "contextual_linear"),
    "no contexts for another": (lambda: sweep(partial(A.online_ucb, epsilon=1.0)), "dim", "contextual_linear"),
    "no agents": (lambda: sweep(partial(A.byzantine_ucb, window=4)), "num_agents", "federated_linear"),
    "agents given": (lambda: sweep(partial(A.byzantine_ucb, window=4, num_agents=3, dim=2)), "num_agents",
        "federated_linear"),
    "no experts": (lambda: sweep("exp4"), "num_experts", "rotating_experts"),
    "experts given": (lambda: sweep(partial(A.exp4, num_experts=3)), "num_experts", "rotating_experts"),
    "no actions": (lambda: sweep(partial(A.phased_elimination, epsilon=1.0)), "actions", "linear_arms"),
    "another horizon": (lambda: sweep(partial(A.ucb1, horizon=50)), "horizon = 50", "sweep's horizon 32",
        "leave it out"),
    "other arms": (lambda: sweep(partial(A.ucb1, num_arms=3)), "num_arms = 3", "environment's 2", "leave it out"),
    # ---- environments
    "no environment": (lambda: sweep(environment=None), "environment = None", "jb.environments"),
    "a number as environment": (lambda: sweep(environment=3), "environment = 3", "jb.environments"),
    "a list as environment": (lambda: sweep(environment=[ARMS]), "environment", "jb.environments"),
    "a dict as environment": (lambda: sweep(environment={"means": [0.1]}), "environment", "jb.environments"),
    "an array as environment": (lambda: sweep(environment=np.ones(2)), "environment"),
    "an unknown environment": (lambda: sweep(environment="bernouli_arms"), "bernouli_arms",
        "did you mean 'bernoulli_arms'"),
    "an algorithm's name": (lambda: sweep(environment="ucb1"), "environment = 'ucb1'", "an algorithm"),
    "a called algorithm": (lambda: sweep(environment=A.ucb1(num_arms=2, horizon=3)), "environment = ucb1(...)",
        "algorithm"),
    "an adversary as environment": (lambda: sweep(environment="huber"), "huber", "adversary"),
    "means missing": (
        lambda: sweep(environment="bernoulli_arms"),
        "bernoulli_arms needs means: functools.partial(jb.environments.bernoulli_arms, means=...) "
        "or environment.means in the grid",
    ),
    "means missing of a factory": (lambda: sweep(environment=E.bernoulli_arms), "bernoulli_arms needs means",
        "partial"),
    "three missing": (lambda: sweep("linucb", "contextual_linear"), "needs num_arms, dim", "environment.num_arms"),
    "no Environment returned": (lambda: sweep(environment=no_environment), "no_environment", "3", "Environment"),
    "a class of dicts": (lambda: sweep(environment=dict), "environment", "dict"),
    "a mean above 1": (lambda: sweep(environment=partial(E.bernoulli_arms, means=[0.1, 1.2])), "means[1]", "1.2"),
    "a mean of nan": (lambda: sweep(environment=partial(E.bernoulli_arms, means=[0.1, np.nan])), "means[1] = nan"),
    "one arm": (lambda: sweep(environment=partial(E.bernoulli_arms, means=[0.1])), "means"),
    # ---- adversaries
    "an unknown adversary": (lambda: sweep(reward_adversary="hubr"), "reward_adversary", "huber"),
    "a number as adversary": (lambda: sweep(reward_adversary=0.1), "reward_adversary = 0.1", "jb.adversaries"),
    "an algorithm as adversary": (lambda: sweep(message_adversary=A.ucb1), "message_adversary", "algorithm"),
    "an environment as adversary": (lambda: sweep(reward_adversary=ARMS), "reward_adversary", "environment"),
    "a bad share": (lambda: sweep(reward_adversary=partial(V.huber, corruption=2.0)), "corruption", "2.0"),
    "True as adversary": (lambda: sweep(reward_adversary=True), "reward_adversary = True"),
    # ---- grid and points
    "a number in the grid": (lambda: sweep("ldp_ucb", grid={"epsilon": 1.0}), "grid['epsilon'] = 1.0", "[1.0]"),
    "a word in the grid": (lambda: sweep("ldp_ucb", grid={"mechanism": "laplace"}), "mechanism", "['laplace']"),
    "None in the grid": (lambda: sweep("ldp_ucb", grid={"epsilon": None}), "epsilon", "list"),
    "an array of no axes": (lambda: sweep("ldp_ucb", grid={"epsilon": np.float64(1.0)}), "epsilon", "list"),
    "a generator": (lambda: sweep("ldp_ucb", grid={"epsilon": (x for x in [1.0])}), "epsilon", "list(...)"),
    "an empty list": (lambda: sweep("ldp_ucb", grid={"epsilon": []}), "epsilon", "empty"),
    "an empty named list": (lambda: sweep("ldp_ucb", grid={"epsilon": {}}), "epsilon", "empty"),
    "a list as grid": (lambda: sweep(grid=[{"epsilon": 1.0}]), "grid", "points"),
    "a word as grid": (lambda: sweep(grid="epsilon"), "grid = 'epsilon'", "dict"),
    "a number as grid": (lambda: sweep(grid=3), "grid = 3", "dict"),
    "a set as grid": (lambda: sweep(grid={"epsilon"}), "grid", "dict"),
    "a number as key": (lambda: sweep(grid={3: [1]}), "3", "name"),
    "no keys": (lambda: sweep(grid={(): [1]}), "()", "tuple"),
    "an empty key": (lambda: sweep(grid={"": [1]}), "''", "name"),
    "a number in a tied key": (lambda: sweep(grid={("epsilon", 3): [1]}), "3", "name"),
    "an unknown key": (lambda: sweep("ldp_ucb", grid={"epsilo": [1.0]}), "epsilo", "did you mean 'epsilon'"),
    "a key of another part": (lambda: sweep(grid={"means": {"a": [0.1, 0.2]}}), "means", "environment.means"),
    "an unknown key of a part": (lambda: sweep(grid={"environment.mean": [1]}), "environment.mean",
        "environment.means"),
    "no such part": (lambda: sweep(grid={"reward_adversary.corruption": [0.1]}), "reward_adversary",
        "no reward_adversary"),
    "bound already": (lambda: sweep(partial(A.ldp_ucb, epsilon=1.0), grid={"epsilon": [1.0]}), "epsilon",
        "partial of 'ldp_ucb'"),
    "a key named t": (lambda: sweep(grid={"t": [1, 2]}), "'t'", "every result"),
    "a key named seed": (lambda: sweep(grid={"seed": [1, 2]}), "'seed'", "every result"),
    "a key named algorithm": (lambda: sweep(grid={"algorithm": ["ucb1"]}), "'algorithm'", "every result"),
    "a key of one letter": (lambda: sweep(grid={"x": [1, 2]}), "grid key 'x': no factory of this sweep takes it"),
    "horizon as key": (lambda: sweep(grid={"horizon": [10]}), "horizon", "list of horizons"),
    "a slash": (lambda: sweep(grid={"a/b": [10]}), "a/b", "relabel"),
    "a value twice": (lambda: sweep("ldp_ucb", grid={"epsilon": [1.0, 1]}), "epsilon", "twice"),
    "unnamed arrays": (
        lambda: sweep(environment="bernoulli_arms", grid={"environment.means": [[0.1, 0.2], [0.3, 0.4]]}),
        "environment.means", "{'environment.means': {'easy'",
    ),
    "one array": (lambda: sweep(environment="bernoulli_arms", grid={"environment.means": np.ones((2, 2))}),
        "name them"),
    "tied columns": (
        lambda: sweep(A.exp3, grid={("learning_rate", "mixing"): [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]]}),
        "ties 2 keys", "row of 2 values",
    ),
    "an infinite epsilon of the wrong kind": (lambda: sweep("ldp_ucb", grid={"epsilon": ["inf"]}), "epsilon", "'inf'"),
    "an epsilon of nan": (lambda: sweep("ldp_ucb", grid={"epsilon": [np.nan]}), "epsilon = nan"),
    "a negative epsilon": (lambda: sweep("ldp_ucb", grid={"epsilon": [1.0, -1.0]}), "epsilon = -1.0"),
    "an epsilon of 0": (lambda: sweep("ldp_ucb", grid={"epsilon": [0]}), "epsilon = 0"),
    "a tiny epsilon": (lambda: sweep("ldp_ucb", grid={"epsilon": [1e-300]}), "epsilon = 1e-300"),
    "a huge integer": (lambda: sweep("ldp_ucb", grid={"epsilon": [10**400]}), "epsilon"),
    "a label of NUL in the grid": (
        lambda: sweep(environment="bernoulli_arms", grid={"environment.means": {"a\0": [0.1, 0.2]}}),
        "environment.means",
    ),
    "broken mathematics in the grid": (
        lambda: sweep(environment="bernoulli_arms", grid={"environment.means": {"$x^{$": [0.1, 0.2]}}), "mathematics",
    ),
    "points and grid": (lambda: sweep("ldp_ucb", grid={"epsilon": [1.0]}, points=[{"epsilon": 1.0}]), "points", "grid"),
    "no points": (lambda: sweep(points=[]), "points", "list of dicts"),
    "a number as points": (lambda: sweep(points=3), "points = 3", "list of dicts"),
    "a word as points": (lambda: sweep(points="epsilon"), "points", "list of dicts"),
    "a dict as points": (lambda: sweep(points={"epsilon": [1.0]}), "points", "list of dicts"),
    "an empty point": (lambda: sweep(points=[{}]), "points", "dicts"),
    "numbers as points": (lambda: sweep(points=[1, 2]), "points", "dicts"),
    "unlike points": (lambda: sweep(A.exp3, points=[{"mixing": 0.1}, {"learning_rate": 0.1}]), "points[0]",
        "learning_rate"),
    "points of an unknown key": (lambda: sweep(points=[{"mixng": 0.1}]), "mixng"),
    # ---- horizon, seeds, checkpoints
    **{
        f"horizon = {value!r}": (lambda value=value: sweep(horizon=value), "horizon")
        for value in (0, -1, 1.5, "ten", None, True, [], [10, 10], [0], [1.5], ["a"], np.nan, np.inf, 1e300, 2**31, {},
            10**400)
    },
    **{
        f"seeds = {value!r}": (lambda value=value: sweep(seeds=value), "seeds")
        for value in (
            0, -1, 1.5, "ten", "10", True, False, None, [], {}, [1, 3], [3, 2, 1], [0.5], ["a"], [-1, 0], range(0),
            range(3, 1),
            range(0, 10, 2), range(-1, 3), 2**31 + 1, 10**400, np.nan, np.inf, (1, 1), np.array([0, 2]),
            np.array([[0, 1]]),
            np.array([0.5]), [True, 2], b"8", object,
        )
    },
    "what consecutive is": (lambda: sweep(seeds=[3, 5]), "[3, 5]", "range(3, 6)"),
    "far seeds": (lambda: sweep(seeds=[2**31]), "seeds"),
    **{
        f"checkpoints = {value!r}": (lambda value=value: sweep(checkpoints=value), "checkpoints")
        for value in (
            0, -1, 1.5, "all", "every", None, True, [], [0], [1, 1], [3, 2], [33], [1.5], ["a"], {}, np.nan, np.inf,
            [np.nan],
            [[1, 2]], [[1], [2, 3]], object(), 10**400, [10**400],
        )
    },
    "what all is": (lambda: sweep(checkpoints="all"), "'all'", "checkpoints=32"),
    "too many checkpoints": (lambda: sweep(horizon=2**30, checkpoints=2**30), "checkpoints", "1,000,000"),
    # ---- dtype, memory, store, engine, devices
    **{
        f"dtype = {value!r}": (lambda value=value: sweep(dtype=value), "dtype", "float32")
        for value in ("float16", "x", None, 32, np.int32, "int", [], np.float16, jnp.bfloat16, object())
    },
    **{
        f"memory = {value!r}": (lambda value=value: sweep(memory=value), "memory")
        for value in (0, -1, "x", "", "2 apples", True, [], {}, np.nan, np.inf, "-1GB", "0B", 10)
    },
    **{
        f"store = {value!r}": (lambda value=value: sweep(store=value), "store")
        for value in (3, True, "", b"x", [], {}, "a\0b", object())
    },
    **{
        f"engine = {value!r}": (lambda value=value: sweep(engine=value), "engine")
        for value in ("gpu", "lokal", None, 3, [], {}, True)
    },
    **{
        f"devices = {value!r}": (lambda value=value: sweep(devices=value), "devices")
        for value in (0, -1, 10**6, "gpu", [], [3], True, 1.5, {})
    },
    # ---- numbers that the run's dtype cannot hold
    "an infinite mean": (lambda: sweep(environment=partial(E.gaussian_arms, means=[0.0, 1e39])), "means", "1e+39",
        "float64"),
    "an infinite scale": (
        lambda: sweep(environment=partial(E.gaussian_arms, means=[0.0, 1.0], scale=1e300)), "scale", "1e+300",
        "float32",
    ),
    "an infinite bonus": (lambda: sweep(partial(A.ucb1, bonus_scale=1e39)), "bonus_scale", "1e+39"),
    "an infinite attack": (lambda: sweep(reward_adversary=partial(V.huber, value=1e39)), "value", "1e+39"),
    "infinite on the grid": (
        lambda: sweep(environment=TWO.func, grid={"environment.means": {"a": [0.1, 0.2], "b": [0.1, 2.0]}}), "means[1]",
        "2.0",
    ),
}  # fmt: skip

OTHERS = {
    # ---- simulate
    "simulate a name": (lambda: jb.simulate("ucb1", ARMS), "ucb1", "horizon", "functools.partial(jb.algorithms.ucb1"),
    "simulate a factory": (lambda: jb.simulate(A.ucb1, ARMS), "ucb1", "horizon", "partial"),
    "simulate None": (lambda: jb.simulate(None, ARMS), "algorithm = None", "jb.algorithms"),
    "simulate 3": (lambda: jb.simulate(3, ARMS), "algorithm = 3"),
    "simulate swapped": (lambda: jb.simulate(ARMS, A.ucb1), "first"),
    "simulate an unknown name": (lambda: jb.simulate("ucb", ARMS), "'ucb'", "ucb1"),
    "simulate without an environment": (lambda: jb.simulate(partial(A.ucb1, horizon=9), None), "environment = None"),
    "simulate an environment's name": (
        lambda: jb.simulate(partial(A.ucb1, horizon=9), "bernoulli_arms"),
        "bernoulli_arms needs means: functools.partial(jb.environments.bernoulli_arms, means=...)",
    ),
    "simulate an unknown environment": (lambda: jb.simulate(partial(A.ucb1, horizon=9), "bernoulli"), "bernoulli_arms"),
    "simulate no contexts": (lambda: jb.simulate(partial(A.linucb, horizon=9), ARMS), "dim", "contextual_linear"),
    "simulate a missing argument": (lambda: jb.simulate(partial(A.ldp_ucb, horizon=9), ARMS), "epsilon", "partial"),
    "simulate an unknown adversary": (
        lambda: jb.simulate(partial(A.ucb1, horizon=9), ARMS, reward_adversary="hubr"), "reward_adversary", "huber",
    ),
    **{
        f"simulate seed = {value!r}": (
            lambda value=value: jb.simulate(partial(A.ucb1, horizon=9), ARMS, seed=value), "seed",
        )
        for value in (-1, 2**32, 1.5, "x", None, True, [1], np.arange(3), np.nan, 10**400, {})
    },
    **{
        f"simulate horizon = {value!r}": (lambda value=value: jb.simulate(partial(A.ucb1, horizon=value), ARMS),
            "horizon")
        for value in (0, -1, "x", None, 1.5, np.inf, 1e300)
    },
    **{
        f"simulate checkpoints = {value!r}": (
            lambda value=value: jb.simulate(partial(A.ucb1, horizon=9), ARMS, checkpoints=value), "checkpoints",
        )
        for value in (0, "all", None, [0], [10], {})
    },
    "simulate dtype": (lambda: jb.simulate(partial(A.ucb1, horizon=9), ARMS, dtype="half"), "dtype", "float32"),
    "simulate an infinite scale": (
        lambda: jb.simulate(partial(A.ucb1, horizon=9), E.gaussian_arms(means=[0, 1], scale=1e300)), "scale", "1e+300",
    ),
    "audit of a number": (lambda: jb.audit(3, runs=2000), "algorithm = 3"),
    "audit of an unknown name": (lambda: jb.audit("ldp_ucv", runs=2000), "ldp_ucv", "ldp_ucb"),
    "ledger of a number": (lambda: jb.privacy.ledger(3, ARMS), "algorithm = 3"),
    # ---- tables and figures
    **{
        f"{name}({what})": (lambda call=call, value=value: call(value), name, "jb.sweep")
        for name, call in {
            "summary": jb.summary, "table": jb.table, "slope": jb.slope, "plot.regret": jb.plot.regret,
            "compare": lambda ds: jb.compare(ds, "one", "two"),
            "plot.against": lambda ds: jb.plot.against(ds, "epsilon"),
        }.items()
        for what, value in {
            "3": 3, "None": None, "a name": "runs/x", "ds.regret": DS.regret, "a list": [DS],
            "no regret": DS.drop_vars("regret"),
            "an array": DS.regret.values,
        }.items()
    },
    **{
        f"{call.__name__} of a mean over {dim}": (lambda call=call, dim=dim: call(DS.mean(dim)),
            "seed" if dim == "seed" else dim)
        for call in (jb.summary, jb.table, jb.plot.regret) for dim in ("seed",)
    },
    "summary without algorithms": (lambda: jb.summary(DS.isel(algorithm=0, drop=True)), "algorithm", "drop"),
    "summary at no checkpoint": (lambda: jb.summary(DS, t=3), "t = 3", "checkpoint"),
    "compare with an unknown label": (lambda: jb.compare(DS, "one", "three"), "b = 'three'", "two"),
    "compare with a number": (lambda: jb.compare(DS, "one", 2), "b = 2", "label"),
    "compare with None": (lambda: jb.compare(DS, None, "one"), "a = None", "label"),
    "compare at an unknown key": (lambda: jb.compare(DS, "one", ("two", {"epsilo": 1})), "epsilo"),
    "compare at an unknown value": (lambda: jb.compare(DS, "one", ("two", {"epsilon": 3})), "epsilon", "3"),
    "table as html": (lambda: jb.table(DS, format="html"), "format", "latex"),
    "table as None": (lambda: jb.table(DS, format=None), "format"),
    "slope over nothing": (lambda: jb.slope(DS, over="epsilo"), "over", "epsilon"),
    "slope of a word": (lambda: jb.slope(DS, over=3), "over = 3"),
    "slope with an unknown label": (lambda: jb.slope(DS, theory={"three": 1}), "theory", "three"),
    "against without a grid": (lambda: jb.plot.against(PLAIN, "epsilon"), "epsilon", "no grid", "plot.regret"),
    "against an unknown key": (lambda: jb.plot.against(DS, "epsilo"), "epsilo", "epsilon"),
    "against a number": (lambda: jb.plot.against(DS, 3), "key = 3"),
    "against None": (lambda: jb.plot.against(DS, None), "key = None"),
    "regret of unknown bands": (lambda: jb.plot.regret(DS, bands="sd"), "bands", "interval"),
    "regret of an unknown axis": (lambda: jb.plot.regret(DS, log="z"), "log", "both"),
    "regret of an unknown choice": (lambda: jb.plot.regret(DS, select={"epsilon": 3}), "epsilon", "3"),
    "regret of an unknown partner": (lambda: jb.plot.regret(DS, dotted=["three"]), "three"),
    "regret as gif": (lambda: jb.plot.regret(DS, path="x.gif"), "x.gif", ".png"),
    # ---- files
    "save of a number": (lambda: jb.save(3, "x.nc"), "save", "3", "jb.sweep"),
    "save of None": (lambda: jb.save(None, "x.nc"), "save", "None"),
    "save of an array": (lambda: jb.save(DS.regret, "x.nc"), "save", "DataArray"),
    "save swapped": (lambda: jb.save("x.nc", DS), "save", "x.nc"),
    **{
        f"save as {name!r}": (lambda name=name: jb.save(DS, name), ".nc", ".zarr")
        for name in ("x.csv", "x", "x.txt", "x.json", "x.NC5", "x.h5", "x.pkl", "x.parquet")
    },
    **{f"save as {name!r}": (lambda name=name: jb.save(DS, name), "path") for name in (3, None, "", "a\0.nc", [])},
    **{f"load of {name!r}": (lambda name=name: jb.load(name), "load: path") for name in (3, None, "", "a\0", [], {})},
    "load of nothing": (lambda: jb.load("no/such/run"), "no/such/run"),
    "losses of nothing": (lambda: jb.read_losses("no.csv"), "no.csv"),
    "losses of a word": (lambda: jb.read_losses("no.doc"), "no.doc", ".csv"),
    "labels of nothing": (lambda: jb.read_labelled("no.csv", label="y"), "no.csv"),
    **{
        f"labels {labels}": (
            lambda labels=labels: E.classification(features=np.arange(4.0)[:, None], labels=labels), "labels",
        )
        for labels in ([0, 0, 0, 0], [0.5, 1, 0, 1], ["a", "a", "a", "a"], ["a", "b", "a", ""], ["a", "b", "a", None],
            [0, 1], [[0], [1], [0], [1]], [[0], [1, 2]], "kind", [], None)
    },
    "labels that are no classes": (lambda: E.classification(features=[[0], [1]], labels=[0.0, 5.5]), "row 2", "5.5"),
    "a missing label": (
        lambda: E.classification(features=[[0.0], [1.0]], labels=["a", float("nan")]), "labels: row 2", "missing"
    ),
    **{f"cores({value!r})": (lambda value=value: jb.cores(value), "cores") for value in (0, -1, 1.5, "all", [])},
    # ---- factories that take another one
    "a base that is none": (lambda: A.private_batched(num_arms=2, horizon=99, epsilon=0.5, base=3), "base = 3"),
    "a base's name": (lambda: A.bandit_to_experts(num_arms=2, num_experts=2, horizon=9, base="exp3"), "base = 'exp3'"),
    "a base of nothing": (lambda: A.doubling(num_arms=2, dim=2, horizon=9, base=lambda: 1), "base", "Algorithm"),
    "a base of a number": (
        lambda: A.private_batched(num_arms=2, horizon=99, epsilon=0.5, base=returns_a_number), "base", "Algorithm",
    ),
}  # fmt: skip

ROWS = {**{f"sweep: {name}": row for name, row in SWEEPS.items()}, **OTHERS}


def without_addresses(name):
    """The same in every process: workers compare the tests that they found."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(name))[:80]


@pytest.mark.parametrize("name", ROWS, ids=without_addresses)
def test_a_wrong_call_is_one_line(name):
    call, *fragments = ROWS[name]
    checked(call, *fragments)


def test_the_table_is_long():
    assert len(ROWS) + len(FILES) + len(MODULES) >= 300


# ---- every argument of every factory

WRONG = (None, "x", np.nan, -1, -1.5, 0, 0.5, np.inf, -np.inf, 1e300, 1e-300, 1e39, [], {}, (), object(), True, [None],
    ["x"],
         np.array([1.0, 2.0]), np.float32(1e30), b"x", 1j, [[1.0], [1.0, 2.0]], set())  # fmt: skip
NUMBERS = (10**400, -(10**400))  # only where a number is meant: elsewhere its text alone would fill the message


def factories():
    for kind, table in (
        ("algorithms", catalogue.ALGORITHMS),
        ("environments", catalogue.ENVIRONMENTS),
        ("adversaries", catalogue.ADVERSARIES),
    ):
        for name, example in table.items():
            yield pytest.param(getattr(getattr(jb, kind), name), example, id=name)


def arguments(factory, example) -> dict:
    """The catalogue's own arguments of a factory."""
    environment = example.environment
    if factory.__name__ in catalogue.ENVIRONMENTS:
        if not isinstance(environment, functools.partial):
            return {key: value for key, value in environment().config.items() if key != "name"}
        return dict(signature_of(environment)[1])
    if factory.__name__ in catalogue.ADVERSARIES:
        return dict(signature_of(example.reward_adversary or example.message_adversary)[1])
    names, given = signature_of(factory)[0], dict(signature_of(example.algorithm)[1])
    fixed = {"horizon": example.horizon} | {k: v for k, v in environment().facts.items() if k in FILLED}
    return {key: value for key, value in fixed.items() if key in names} | given


@pytest.mark.parametrize("factory, example", list(factories()))
def test_every_argument_of_every_factory(factory, example):
    """A valid part or an error of one line: nothing from inside, whatever an argument is."""
    given = arguments(factory, example)
    factory(**given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key, parameter in inspect.signature(factory).parameters.items():
            meant = given.get(key, parameter.default)
            numeric = isinstance(meant, int | float) and not isinstance(meant, bool)
            for value in (*WRONG, *(NUMBERS if numeric else ())):
                try:
                    factory(**given | {key: value})
                except (ValueError, TypeError) as error:
                    said = str(error)
                    assert "\n" not in said and len(said) <= LENGTH, (key, value, said)
                    assert "ambiguous" not in said and "inhomogeneous" not in said, (key, value, said)
                    if not callable(value) and not isinstance(value, float | int | np.floating):
                        assert key in said or key == "bases", (key, value, said)


# ---- TOML files

GOOD = """
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

FILES = {
    "horizon of nan": ("horizon = 32", "horizon = nan", "horizon = nan"),
    "horizon in words": ("horizon = 32", 'horizon = "ten"', "horizon = 'ten'"),
    "horizon of 0": ("horizon = 32", "horizon = 0", "horizon = 0"),
    "seeds backwards": ("seeds = 8", "seeds = [5, 2]", "seeds", "[a, b]"),
    "seeds alike": ("seeds = 8", "seeds = [5, 5]", "seeds", "[a, b]"),
    "seeds with a gap": ("seeds = 8", "seeds = [1, 2, 4]", "seeds = [1, 2, 4]", "consecutive"),
    "half seeds": ("seeds = 8", "seeds = [0.5, 8.5]", "seeds"),
    "seeds in words": ("seeds = 8", 'seeds = ["a", "b"]', "seeds"),
    "no seeds": ("seeds = 8", "seeds = []", "seeds"),
    "negative seeds": ("seeds = 8", "seeds = [-1, 4]", "seeds"),
    "a table of seeds": ("seeds = 8", "seeds = {first = 1}", "seeds"),
    "checkpoints in words": ("checkpoints = 4", 'checkpoints = "all"', "checkpoints = 'all'", "checkpoints=32"),
    "half precision": ("checkpoints = 4", 'dtype = "float16"', "dtype", "float32"),
    "a capital NaN": ("means = [0.2, 0.8]", "means = [0.2, NaN]", "TOML", "nan", "not NaN"),
    "None": ("means = [0.2, 0.8]", "means = None", "TOML", "not None"),
    "a capital True": ("checkpoints = 4", "checkpoints = True", "TOML", "not True"),
    "a mean of nan": ("means = [0.2, 0.8]", "means = [0.2, nan]", "means[1] = nan"),
    "a mean of inf": ("means = [0.2, 0.8]", "means = [0.2, inf]", "means[1] = inf"),
    "no means": ("means = [0.2, 0.8]", "", "bernoulli_arms needs means"),
    "words as means": ("means = [0.2, 0.8]", 'means = ["a", "b"]', "means"),
    "an unknown environment": ('"bernoulli_arms"', '"bernoully_arms"', "bernoulli_arms"),
    "an algorithm as environment": ('"bernoulli_arms"\nmeans = [0.2, 0.8]', '"ucb1"', "ucb1"),
    "a number as name": ('name = "ucb1"', "name = 3", "name"),
    "no name": ('name = "ucb1"', 'label = "a"', "name"),
    "a number as label": ('name = "ucb1"', 'name = "ucb1"\nlabel = 3', "label = 3"),
    "a list as label": ('name = "ucb1"', 'name = "ucb1"\nlabel = ["a"]', "label"),
    "a label of NUL": ('name = "ucb1"', 'name = "ucb1"\nlabel = "a\\u0000"', "label"),
    "broken mathematics": ('name = "ucb1"', 'name = "ucb1"\nlabel = "$x^{$"', "mathematics"),
    "a broken caption": ("[grid]", '[grid]\n', None),
    "a label twice": ('name = "ucb1"', 'name = "ucb1"\nlabel = "ldp_ucb"', "ldp_ucb", "label"),
    "no contexts": ('name = "ucb1"', 'name = "linucb"', "dim", "contextual_linear"),
    "a number in the grid": ("epsilon = [0.5, 1.0]", "epsilon = 1.0", "epsilon", "list"),
    "a word in the grid": ("epsilon = [0.5, 1.0]", 'epsilon = "all"', "epsilon", "list"),
    "nan in the grid": ("epsilon = [0.5, 1.0]", "epsilon = [nan]", "epsilon = nan"),
    "a tiny epsilon": ("epsilon = [0.5, 1.0]", "epsilon = [1e-300]", "epsilon = 1e-300"),
    "a grid that is a list": ("[grid]\nepsilon = [0.5, 1.0]", "", None),
    "a tied table without keys": ("[grid]", "[[tied]]\nvalues = [1]\n[grid]", "tied[0]", "keys"),
    "tied columns": (
        "[grid]\nepsilon = [0.5, 1.0]",
        '[[tied]]\nkeys = ["epsilon", "ucb1.bonus_scale"]\nvalues = [[1, 2, 3], [4, 5, 6]]', "ties 2 keys",
    ),
    "a figure against nothing": ("[grid]", '[figure]\nagainst = "epsilo"\n[grid]', "epsilon"),
    "an unknown key": ("checkpoints = 4", "chekpoints = 4", "checkpoints"),
    "an infinite scale": (
        '"bernoulli_arms"\nmeans = [0.2, 0.8]', '"gaussian_arms"\nmeans = [0.2, 0.8]\nscale = 1e300', "scale", "1e+300",
    ),
    "os.system": ('name = "ucb1"', 'name = "os:system"', "os:system", "standard library"),
    "os.getcwd": ('name = "ucb1"', 'name = "os:getcwd"', "os:getcwd", "standard library"),
    "eval": ('name = "ucb1"', 'name = "builtins:eval"', "builtins:eval", "standard library"),
    "a library's function": ('name = "ucb1"', 'name = "numpy:zeros"', "numpy:zeros", "installed library"),
    "a deep library": ('name = "ucb1"', 'name = "jax.numpy:zeros"', "jax.numpy:zeros", "installed library"),
    "subprocess as environment": (
        '"bernoulli_arms"\nmeans = [0.2, 0.8]', '"subprocess:run"\nargs = ["true"]', "subprocess:run",
        "standard library",
    ),
    "no module": ('name = "ucb1"', 'name = "no_such_module_here:f"', "no_such_module_here"),
    "no function's name": ('name = "ucb1"', 'name = "json:"', "json:", "module:function"),
    "no module's name": ('name = "ucb1"', 'name = ":f"', ":f", "module:function"),
    "two colons": ('name = "ucb1"', 'name = "a:b:c"', "a:b:c", "module:function"),
    "a path": ('name = "ucb1"', 'name = "../a:b"', "../a:b", "module:function"),
}  # fmt: skip
FILES = {name: row for name, row in FILES.items() if row[2] is not None}
WHOLE = {
    "an empty file": (b"", "horizon"),
    "not TOML": (b"horizon = [", "TOML"),
    "not text": (b"\xff\xfe\x00h", "UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "UTF-8"),
    "a list as grid": (GOOD.split("[grid]")[0].replace("horizon", "grid = [1]\nhorizon").encode(), "grid = [1]",
        "table"),
    "a number as figure": (GOOD.replace("horizon", "figure = 3\nhorizon", 1).encode(), "figure = 3", "table"),
    "a number as caption": (GOOD.replace("horizon", "caption = 3\nhorizon", 1).encode(), "caption = 3", "string"),
    "a broken caption": (GOOD.replace("horizon", 'caption = "$x^{$"\nhorizon', 1).encode(), "caption", "mathematics"),
    "a number as algorithm": (GOOD.split("[[alg")[0].replace("horizon", "algorithm = 3\nhorizon").encode(),
        "algorithm[0] = 3"),
    "a number as environment": (b'horizon = 9\nseeds = 8\nenvironment = 3\nalgorithm = "ucb1"\n',
        "environment needs a name"),
    "points of a number": (GOOD.split("[grid]")[0].replace("horizon", "points = 3\nhorizon").encode(), "points = 3"),
    "tied of a number": (GOOD.replace("horizon", "tied = 3\nhorizon", 1).encode(), "tied"),
}  # fmt: skip

MODULES = {
    "from_os": ("from os import system as made", "standard library"),
    "from_numpy": ("from numpy import zeros as made", "installed library"),
    "ufunc": ("from numpy import sin as made", "installed library"),
    "raises": ("raise RuntimeError('no')", "RuntimeError", "no"),
    "two_lines": ("raise RuntimeError('no\\nnever')", "RuntimeError: no never"),
    "exits": ("raise SystemExit(3)", "SystemExit"),
    "syntax": ("def made(:", "SyntaxError"),
    "nothing": ("x = 1", "made"),
    "a_number": ("made = 3", "int", "no function"),
    "returns_none": ("def made(*, num_arms, horizon):\n    return None", "None", "Algorithm"),
    "returns_text": ("def made():\n    return 'x'", "'x'", "Algorithm"),
    "returns_environment": ("from jaxbandits.environments import bernoulli_arms as made", "environment"),
    "raises_inside": ("def made(*, num_arms, horizon):\n    return {}['missing']", "KeyError", "missing"),
    "partial_of_os": ("import functools, os\nmade = functools.partial(os.system, 'true')", "standard library"),
    "a_class": ("class made:\n    pass", "made", "Algorithm"),
}


def run_file(path, capsys, *fragments, code=2):
    assert main(["run", str(path), "--out", str(path.parent / "out"), "--quiet"]) == code
    said = capsys.readouterr().err
    assert said.startswith("jaxbandits: ") and said.count("\n") == 1 and "Traceback" not in said, said
    for fragment in fragments:
        assert fragment.lower() in said.lower(), (fragment, said)
    assert not (path.parent / "out").exists()


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_file_is_one_line(name, tmp_path, capsys):
    old, new, *fragments = FILES[name]
    assert old in GOOD
    path = tmp_path / "run.toml"
    path.write_text(GOOD.replace(old, new))
    run_file(path, capsys, "run.toml" if fragments[0] in ("TOML", "seeds") else "", *fragments)


@pytest.mark.parametrize("name", WHOLE)
def test_a_broken_file_is_one_line(name, tmp_path, capsys):
    content, *fragments = WHOLE[name]
    (tmp_path / "run.toml").write_bytes(content)
    run_file(tmp_path / "run.toml", capsys, "run.toml" if name != "points of a number" else "", *fragments)


def test_a_directory_is_no_file(tmp_path, capsys):
    (tmp_path / "here").mkdir()
    run_file(tmp_path / "here", capsys, "here", "directory")


@pytest.mark.parametrize("name", MODULES)
def test_a_wrong_module_is_one_line(name, tmp_path, capsys):
    content, *fragments = MODULES[name]
    (tmp_path / f"wrong_{name}.py").write_text(f"{content}\n")
    path = tmp_path / "run.toml"
    path.write_text(GOOD.replace('name = "ucb1"', f'name = "wrong_{name}:made"'))
    run_file(path, capsys, *fragments)


def test_a_module_beside_the_file_hides_nothing(tmp_path, capsys):
    """A `json.py` beside the file is neither what `json` means inside the user's module nor a name
    that can be asked for.
    """
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "mine_beside.py").write_text(
        "import colorsys\nfrom jaxbandits.algorithms import ucb1\n\nassert colorsys.rgb_to_hsv\n\n"
        "def mine(*, num_arms, horizon):\n    return ucb1(num_arms=num_arms, horizon=horizon)\n"
    )
    path = tmp_path / "run.toml"
    path.write_text(GOOD.replace('name = "ucb1"', 'name = "mine_beside:mine"'))
    from jaxbandits.sweeps.toml_file import read_config

    assert list(read_config(path)["algorithms"]) == ["mine_beside:mine", "ldp_ucb"]
    path.write_text(GOOD.replace('name = "ucb1"', 'name = "colorsys:mine"'))
    run_file(path, capsys, "colorsys", "standard library", "another name")


def test_a_file_with_a_byte_order_mark_and_names_alone(tmp_path):
    from jaxbandits.sweeps.toml_file import read_config

    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert list(read_config(path)["algorithms"]) == ["ucb1", "ldp_ucb"]
    path.write_text(
        'horizon = 9\nseeds = [3, 7]\nalgorithm = ["ucb1", "moss"]\nenvironment = {name = "bernoulli_arms"}\n'
    )
    settings = read_config(path)
    assert list(settings["algorithms"]) == ["ucb1", "moss"] and settings["seeds"] == range(3, 7)
    path.write_text(path.read_text().replace("[3, 7]", "[3, 4, 5]"))
    assert read_config(path)["seeds"] == range(3, 6)


# ---- what should simply work


def laid_out(algorithms="ucb1", environment=ARMS, **changes):
    settings = {"horizon": 32, "seeds": 8, "checkpoints": 4, "grid": None, "points": None, "dtype": "float32"}
    return plan(algorithms, environment, **{**settings, "reward_adversary": None, "message_adversary": None, **changes})


def test_names_are_looked_up():
    grid = {"environment.means": {"easy": [0.1, 0.9], "hard": [0.4, 0.5]}}
    by_name = sweep(["ucb1", A.moss], "bernoulli_arms", grid=grid, reward_adversary="huber")
    by_factory = sweep([A.ucb1, A.moss], E.bernoulli_arms, grid=grid, reward_adversary=V.huber)
    assert (
        by_name.algorithm.values.tolist() == ["ucb1", "moss"] and by_name.attrs["config"] == by_factory.attrs["config"]
    )
    np.testing.assert_array_equal(by_name.regret, by_factory.regret)
    assert laid_out({"a": "ucb1", "b": partial(A.exp3, mixing=0.1)}).labels == ["a", "b"]
    run = jb.simulate(partial(A.ucb1, horizon=32), ARMS, reward_adversary="huber", checkpoints=4, seed=np.uint32(3))
    np.testing.assert_array_equal(run.regret, sweep(reward_adversary="huber").regret[0, 3])


@pytest.mark.parametrize("seeds",
    [[3, 4, 5], (3, 4, 5), np.arange(3, 6), np.arange(3, 6, dtype=np.uint8), [3.0, 4.0, 5.0],
                                   xr.DataArray(np.arange(3, 6)), range(3, 6)])  # fmt: skip
def test_consecutive_seeds_are_a_range(seeds):
    assert laid_out(seeds=seeds).seeds == range(3, 6)


@pytest.mark.parametrize("dtype", [np.float32, jnp.float32, np.dtype("float32"), "f4", "float32"])
def test_dtypes_have_many_names(dtype):
    assert laid_out(dtype=dtype).dtype == "float32"


def test_every_play_is_a_number_of_checkpoints():
    assert checkpoint_times(32, 32).tolist() == list(range(1, 33))


CHOSEN = {
    "an algorithm": lambda ds: ds.sel(algorithm="one"),
    "a seed": lambda ds: ds.isel(seed=0),
    "an epsilon": lambda ds: ds.sel(epsilon=0.1),
    "the end": lambda ds: ds.isel(t=-1),
    "one lane": lambda ds: ds.isel(algorithm=0, seed=1, epsilon=0),
    "a number": lambda ds: ds.isel(algorithm=0, seed=1, epsilon=0, t=-1),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_what_xarray_selects_can_be_summarised(chosen):
    ds = CHOSEN[chosen](DS)
    labels = np.atleast_1d(ds.algorithm.values)
    kept = DS.sel(
        algorithm=labels, epsilon=np.atleast_1d(ds.epsilon), seed=np.atleast_1d(ds.seed), t=np.atleast_1d(ds.t)
    )
    for call in (
        jb.summary, jb.table, lambda ds: jb.table(ds, format="latex"), lambda ds: jb.compare(ds, labels[0], labels[-1]),
        *([jb.slope] if ds.t.size > 1 else []), lambda ds: jb.plot.against(ds, "epsilon").data,
        lambda ds: jb.plot.regret(ds, select={"epsilon": 0.1}).data,
    ):  # fmt: skip
        here, there = call(ds), call(kept)
        assert here.equals(there) if hasattr(here, "equals") else here == there
    if ds.seed.ndim == 0:
        assert jb.summary(ds).ci_low.isna().all() and "one seed" in jb.table(ds)


def test_one_point_of_points_can_be_summarised():
    dims = ("algorithm", "point", "seed", "t")
    coords = {"algorithm": ["a"], "seed": [0, 1], "t": [1, 2], "point": [0, 1], "epsilon": ("point", [0.1, 1.0])}
    ds = xr.Dataset({"regret": (dims, np.arange(8.0).reshape(1, 2, 2, 2))}, coords)
    frame = jb.summary(ds.isel(point=1))
    assert frame[["point", "epsilon", "mean"]].values.tolist() == [[1, 1.0, 6.0]]


# ---- what cannot be held or computed


def test_a_result_that_cannot_be_held_is_refused_before_it_runs(tmp_path, monkeypatch):
    for store, remedy in ((None, "store=DIR"), (tmp_path / "deep" / "er", "another disk")):
        said = checked(
            lambda store=store: sweep(seeds=2**31, store=store, horizon=10**6, checkpoints=10**5),
            "TB",
            "fewer checkpoints",
            "fewer seeds",
        )
        assert remedy in said and not (tmp_path / "deep").exists()
    monkeypatch.setattr(free_space, "free_memory", lambda: 300)
    checked(lambda: sweep(), "seeds = 8", "320 B", "300 B")  # 8 lanes of 4 checkpoints and 2 arms
    monkeypatch.setattr(free_space, "free_memory", lambda: 400)
    assert sweep().sizes["seed"] == 8


def test_free_memory_is_a_number_of_bytes():
    assert 2**20 < free_space.free_memory() < 2**50


FLAGS = [
    ("jax_disable_jit", True), ("jax_transfer_guard", "disallow"),
    ("jax_transfer_guard_host_to_device", "disallow_explicit"), ("jax_no_tracing", True),
    ("jax_error_checking_behavior_nan", "raise"), ("jax_error_checking_behavior_oob", "raise"),
]  # fmt: skip


@pytest.mark.parametrize("flag, value", FLAGS)
def test_a_flag_that_breaks_a_sweep_is_named(flag, value):
    before = getattr(jax.config, flag)
    jax.config.update(flag, value)
    try:
        checked(lambda: sweep(), flag.removesuffix("_host_to_device"), "jax.config.update")
        checked(lambda: jb.simulate(partial(A.ucb1, horizon=9), ARMS), "jax.config.update")
    finally:
        jax.config.update(flag, before)


# ---- labels in tables and files

ODD = ["=1+1", "+a", "-b", "@c", "two\nlines", "<script>alert(1)</script>", "a|b", 'quo"te', " =x"]


def test_odd_labels_stay_text(tmp_path):
    from jaxbandits.reports import output

    ds = result(ODD)
    lines = jb.table(ds).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 1 + len(ODD)
    assert "<script" not in jb.table(ds) and "&lt;script" in jb.table(ds) and r"a\|b" in jb.table(ds)
    assert not any(line.startswith(("| =", "| +", "| -", "| @")) for line in lines)
    assert all(line.endswith(r"\\") for line in jb.table(ds, format="latex").splitlines()[2:-1] if "hline" not in line)
    assert set(jb.summary(ds).algorithm) == set(ODD)  # the table in memory keeps them as they are
    from jaxbandits.selection import csv

    text = csv(jb.summary(ds).assign(**{"=key": -1.5}))
    assert len(text.splitlines()) == 1 + 2 * len(ODD) and "-1.5" in text and "'-1.5" not in text
    assert not any(line.lstrip('"').startswith(("=", "+", "-", "@", " =")) for line in text.splitlines())
    assert text.splitlines()[0].endswith("'=key")
    assert output  # what writes summary.csv
    assert laid_out({label: A.ucb1 for label in ODD}).labels == ODD


# ---- stores


def test_a_result_of_a_later_release_is_refused(tmp_path):
    DS.assign_attrs(schema_version=99).to_netcdf(tmp_path / "later.nc", engine="h5netcdf")
    checked(lambda: jb.load(tmp_path / "later.nc"), "schema_version = 99", "upgrade jaxbandits")
    DS.assign_attrs(schema_version="new").to_netcdf(tmp_path / "odd.nc", engine="h5netcdf")
    assert jb.load(tmp_path / "odd.nc").identical(DS.assign_attrs(schema_version="new"))


def test_a_run_says_what_it_found_and_what_it_took(tmp_path, capsys):
    path, out = tmp_path / "run.toml", tmp_path / "out"
    path.write_text(GOOD.replace('[[algorithm]]\nname = "ldp_ucb"\n[grid]\nepsilon = [0.5, 1.0]\n', ""))
    command = ["run", str(path), "--out", str(out)]
    assert main(command) == 0
    assert "0 lanes from the store, 8 computed in" in capsys.readouterr().out
    spent = json.loads((out / "provenance.json").read_text())["seconds"]
    assert spent > 0
    (out / "provenance.json").unlink()  # written anew: what it says was spent is what was spent
    assert main(command) == 0
    said = capsys.readouterr()
    assert "8 lanes from the store, 0 computed" in said.out and "8 lanes from the store, 0 computed" in said.err
    assert json.loads((out / "provenance.json").read_text())["seconds"] == spent
    assert main([*command, "--seeds", "16"]) == 0
    said = capsys.readouterr()
    assert "8 lanes from the store, 8 computed" in said.out and "8 lanes from the store" in said.err
    assert json.loads((out / "provenance.json").read_text())["seconds"] > spent
    path.write_text(path.read_text().replace("means = [0.2, 0.8]", f"means = {[0.2] * 30 + [0.8]}"))
    assert main(command) == 2
    assert "environment.means is of length 2 there, of length 31 here" in capsys.readouterr().err
    path.write_text(path.read_text().replace(f"{[0.2] * 30 + [0.8]}", "[0.2, 0.7]"))
    assert main(command) == 2
    assert "environment.means[1] is 0.8 there, 0.7 here" in capsys.readouterr().err
    assert main([*command, "--fresh"]) == 0
    assert "0 lanes from the store, 8 computed" in capsys.readouterr().out
    kept = json.loads((out / "provenance.json").read_text())["seconds"]
    assert main([*command, "--quiet"]) == 0 and kept < 60


def test_the_bar_does_not_count_restored_plays(tmp_path, monkeypatch):
    """A call taken up at play 20 of 32 begins there: its rate is that of the twelve plays left."""
    from jaxbandits.sweeps.engines import one_call
    from jaxbandits.sweeps.engines.calls import Task

    planned = laid_out()
    task, device = Task(0, (0,), 0, 8, 8), jax.local_devices()[0]
    saved, seen = [], []

    def keep(span, window, leaves, last=False):
        saved.append((span, window, leaves()))

    monkeypatch.setattr(one_call, "FIRST_SEGMENT", 20)
    whole = one_call.run_task(task, planned, device, keep=keep)
    span, window, leaves = saved[0]

    class At:
        pass

    At.span, At.window = span, window
    again = one_call.run_task(
        task, planned, device, begun=(At, leaves), report=lambda played: seen.append((played.plays, played.restored))
    )
    np.testing.assert_array_equal(whole.regret, again.regret)
    assert window == 20 and [plays for plays, restored in seen if restored] == [20 * 8]
    assert sum(plays for plays, _ in seen) == 32 * 8


def test_the_rate_of_the_bar_begins_where_the_run_does(monkeypatch):
    from jaxbandits.sweeps import execution
    from jaxbandits.sweeps.engines.one_call import Played

    bars = []

    class Bar(tqdm.tqdm):
        def close(self):
            bars.append((self.initial, self.n, self.total))
            super().close()

    monkeypatch.setattr(tqdm, "tqdm", Bar)

    def run(plan, calls, machine, *, report, sink, **others):
        report(Played(0, 200, restored=True))
        report(Played(0, 56))

    planned = execution.Job(laid_out(), {}, {}, engine_of(run))
    planned._run(execution.owned(planned.plan, 1, None), None)
    assert bars[0] == (200, 256, 256)


def engine_of(run):
    """An engine that plays nothing."""
    from jaxbandits.sweeps.engines.local import Local

    engine = Local(None, None)
    engine.run = run
    return engine


def test_the_help_says_that_a_file_is_a_program(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "a program" in " ".join(capsys.readouterr().out.split())


def test_a_value_is_shown_on_one_line():
    from jaxbandits.validation import shown

    assert shown(np.ones((9, 9))).count("\n") == 0 and len(shown(list(range(10**4)))) <= 80
    assert shown(np.float64(0.5)) == "0.5" and "bits" in shown(10**5000)
    assert textwrap.shorten(shown("a\nb"), 20) == r"'a\nb'"
