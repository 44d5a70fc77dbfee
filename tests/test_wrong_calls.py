"""Wrong calls and configurations, as a table: each ends in one line that names the argument, the value and the remedy."""

import functools
import inspect
import json
import textwrap
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandits as jb
from jaxbandits import catalogue
from jaxbandits.cli import main
from jaxbandits.sweeps import room
from jaxbandits.sweeps.given import signature_of
from jaxbandits.sweeps.plan import FILLED, checkpoint_times, plan

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
    "an environment's name": (lambda: sweep("bernoulli_arms"), "bernoulli_arms", "environment", "algorithms come first"),
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
    "a missing argument": (lambda: sweep("ldp_ucb"), "epsilon", "functools.partial(jb.algorithms.ldp_ucb", "in the grid"),
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
    "agents given": (lambda: sweep(partial(A.byzantine_ucb, window=4, num_agents=3, dim=2)), "num_agents", "federated_linear"),
    "no experts": (lambda: sweep("exp4"), "num_experts", "rotating_experts"),
    "experts given": (lambda: sweep(partial(A.exp4, num_experts=3)), "num_experts", "rotating_experts"),
    "no actions": (lambda: sweep(partial(A.phased_elimination, epsilon=1.0)), "actions", "linear_arms"),
    "another horizon": (lambda: sweep(partial(A.ucb1, horizon=50)), "horizon = 50", "sweep's horizon 32", "leave it out"),
    "other arms": (lambda: sweep(partial(A.ucb1, num_arms=3)), "num_arms = 3", "environment's 2", "leave it out"),
    # ---- environments
    "no environment": (lambda: sweep(environment=None), "environment = None", "jb.environments"),
    "a number as environment": (lambda: sweep(environment=3), "environment = 3", "jb.environments"),
    "a list as environment": (lambda: sweep(environment=[ARMS]), "environment", "jb.environments"),
    "a dict as environment": (lambda: sweep(environment={"means": [0.1]}), "environment", "jb.environments"),
    "an array as environment": (lambda: sweep(environment=np.ones(2)), "environment"),
    "an unknown environment": (lambda: sweep(environment="bernouli_arms"), "bernouli_arms", "did you mean 'bernoulli_arms'"),
    "an algorithm's name": (lambda: sweep(environment="ucb1"), "environment = 'ucb1'", "an algorithm"),
    "a called algorithm": (lambda: sweep(environment=A.ucb1(num_arms=2, horizon=3)), "environment = ucb1(...)", "algorithm"),
    "an adversary as environment": (lambda: sweep(environment="huber"), "huber", "adversary"),
    "means missing": (
        lambda: sweep(environment="bernoulli_arms"),
        "bernoulli_arms needs means: functools.partial(jb.environments.bernoulli_arms, means=...) or environment.means in the grid",
    ),
    "means missing of a factory": (lambda: sweep(environment=E.bernoulli_arms), "bernoulli_arms needs means", "partial"),
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
    "an unknown key of a part": (lambda: sweep(grid={"environment.mean": [1]}), "environment.mean", "environment.means"),
    "no such part": (lambda: sweep(grid={"reward_adversary.corruption": [0.1]}), "reward_adversary", "no reward_adversary"),
    "bound already": (lambda: sweep(partial(A.ldp_ucb, epsilon=1.0), grid={"epsilon": [1.0]}), "epsilon", "partial of 'ldp_ucb'"),
    "a key named t": (lambda: sweep(grid={"t": [1, 2]}), "'t'", "every result"),
    "a key named seed": (lambda: sweep(grid={"seed": [1, 2]}), "'seed'", "every result"),
    "a key named algorithm": (lambda: sweep(grid={"algorithm": ["ucb1"]}), "'algorithm'", "every result"),
    "horizon as key": (lambda: sweep(grid={"horizon": [10]}), "horizon", "list of horizons"),
    "a slash": (lambda: sweep(grid={"a/b": [10]}), "a/b", "relabel"),
    "a value twice": (lambda: sweep("ldp_ucb", grid={"epsilon": [1.0, 1]}), "epsilon", "twice"),
    "unnamed arrays": (
        lambda: sweep(environment="bernoulli_arms", grid={"environment.means": [[0.1, 0.2], [0.3, 0.4]]}),
        "environment.means", "{'environment.means': {'easy'",
    ),
    "one array": (lambda: sweep(environment="bernoulli_arms", grid={"environment.means": np.ones((2, 2))}), "name them"),
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
        lambda: sweep(environment="bernoulli_arms", grid={"environment.means": {"a\0": [0.1, 0.2]}}), "environment.means",
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
    "unlike points": (lambda: sweep(A.exp3, points=[{"mixing": 0.1}, {"learning_rate": 0.1}]), "points[0]", "learning_rate"),
    "points of an unknown key": (lambda: sweep(points=[{"mixng": 0.1}]), "mixng"),
    # ---- horizon, seeds, checkpoints
    **{
        f"horizon = {value!r}": (lambda value=value: sweep(horizon=value), "horizon")
        for value in (0, -1, 1.5, "ten", None, True, [], [10, 10], [0], [1.5], ["a"], np.nan, np.inf, 1e300, 2**31, {}, 10**400)
    },
    **{
        f"seeds = {value!r}": (lambda value=value: sweep(seeds=value), "seeds")
        for value in (
            0, -1, 1.5, "ten", "10", True, False, None, [], {}, [1, 3], [3, 2, 1], [0.5], ["a"], [-1, 0], range(0), range(3, 1),
            range(0, 10, 2), range(-1, 3), 2**31 + 1, 10**400, np.nan, np.inf, (1, 1), np.array([0, 2]), np.array([[0, 1]]),
            np.array([0.5]), [True, 2], b"8", object,
        )
    },
    "what consecutive is": (lambda: sweep(seeds=[3, 5]), "[3, 5]", "range(3, 6)"),
    "far seeds": (lambda: sweep(seeds=[2**31]), "seeds"),
    **{
        f"checkpoints = {value!r}": (lambda value=value: sweep(checkpoints=value), "checkpoints")
        for value in (
            0, -1, 1.5, "all", "every", None, True, [], [0], [1, 1], [3, 2], [33], [1.5], ["a"], {}, np.nan, np.inf, [np.nan],
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
    "an infinite mean": (lambda: sweep(environment=partial(E.gaussian_arms, means=[0.0, 1e39])), "means", "1e+39", "float64"),
    "an infinite scale": (
        lambda: sweep(environment=partial(E.gaussian_arms, means=[0.0, 1.0], scale=1e300)), "scale", "1e+300", "float32",
    ),
    "an infinite bonus": (lambda: sweep(partial(A.ucb1, bonus_scale=1e39)), "bonus_scale", "1e+39"),
    "an infinite attack": (lambda: sweep(reward_adversary=partial(V.huber, value=1e39)), "value", "1e+39"),
    "infinite on the grid": (
        lambda: sweep(environment=TWO.func, grid={"environment.means": {"a": [0.1, 0.2], "b": [0.1, 2.0]}}), "means[1]", "2.0",
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
        f"simulate horizon = {value!r}": (lambda value=value: jb.simulate(partial(A.ucb1, horizon=value), ARMS), "horizon")
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
            "compare": lambda ds: jb.compare(ds, "one", "two"), "plot.against": lambda ds: jb.plot.against(ds, "epsilon"),
        }.items()
        for what, value in {
            "3": 3, "None": None, "a name": "runs/x", "ds.regret": DS.regret, "a list": [DS], "no regret": DS.drop_vars("regret"),
            "an array": DS.regret.values,
        }.items()
    },
    **{
        f"{call.__name__} of a mean over {dim}": (lambda call=call, dim=dim: call(DS.mean(dim)), "seed" if dim == "seed" else dim)
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
        for labels in ([0, 5, 0, 5], [1, 2, 1, 2], [0, 1, 3, 1], [0, 0, 0, 0], [0.5, 1, 0, 1], ["a", "b", "a", "b"], [0, 1], [], None)
    },
    "labels with a gap": (
        lambda: E.classification(features=np.arange(4.0)[:, None], labels=[0, 5, 0, 5]), "[0, 5]", "np.unique", "return_inverse",
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


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_call_is_one_line(name):
    call, *fragments = ROWS[name]
    checked(call, *fragments)


def test_the_table_is_long():
    assert len(ROWS) + len(FILES) + len(MODULES) >= 300


# ---- every argument of every factory

WRONG = (None, "x", np.nan, -1, -1.5, 0, 0.5, np.inf, -np.inf, 1e300, 1e-300, 1e39, [], {}, (), object(), True, [None], ["x"],
         np.array([1.0, 2.0]), np.float32(1e30), b"x", 1j, [[1.0], [1.0, 2.0]], set())  # fmt: skip
NUMBERS = (10**400, -(10**400))  # only where a number is meant: elsewhere its text alone would fill the message


def factories():
    for kind, table in (("algorithms", catalogue.ALGORITHMS), ("environments", catalogue.ENVIRONMENTS), ("adversaries", catalogue.ADVERSARIES)):  # fmt: skip
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


@pytest.mark.parametrize("factory, example", factories())
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
