"""Named epsilon against spent epsilon, and regret at equal spent epsilon."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr

from jaxbandits import algorithms as a
from jaxbandits import catalogue, privacy, provenance
from jaxbandits import environments as e
from jaxbandits.auditing.audit import audit
from jaxbandits.environments.linear import Params as LinearParams
from jaxbandits.environments.linear import in_unit_ball, linear_world
from jaxbandits.papers.robust_linear.instance import batches, unit
from jaxbandits.papers.shared import against, by_value, ratios, with_numeric_key
from jaxbandits.papers.study import Claim, Claims, Evidence, Exact, Interval, Results, Study, Sweep, few, swept
from jaxbandits.protocol import Algorithm, Environment, World
from jaxbandits.reports import plot
from jaxbandits.selection import final_regret
from jaxbandits.typing import AlgorithmFactory, Matrix, Vector
from jaxbandits.validation import array, factory

DELTA = 1e-3  # of every claim that has one, but where a case says otherwise
WINDOW = 20  # users of a batch in the shuffle model, as in the code of Chowdhury and Zhou
NAMED = (0.1, 1.0, 10.0)


class Mechanism(NamedTuple):
    """A mechanism as a case of the catalogue, and whose it is.

    From its record in provenance.toml follow what the study may hold against it and up to which epsilon.
    """

    source: provenance.ProvenanceRecord
    changes: Callable[[float], dict[str, Any]]  # named epsilon -> arguments that replace the catalogue's
    environment: Callable[[], Environment] | None = None  # the rewards it is published for, where not the catalogue's

    def build_case(self, epsilon: float) -> tuple[Algorithm, Environment]:
        """The algorithm that is given this epsilon, and where it plays."""
        settings = {**self.source.settings, **self.changes(epsilon)}
        with warnings.catch_warnings():  # of what the study's table is about to say
            warnings.simplefilter("ignore", UserWarning)
            algorithm, environment = catalogue.case(self.source.algorithm, **settings)
        return algorithm, environment if self.environment is None else self.environment()


def _mechanism(record: str, changes: Callable[[float], dict[str, Any]], *environment: Any) -> Mechanism:
    return Mechanism(provenance.records()[record], changes, *environment)


def _pure(record: str, *environment: Any, **more: object) -> Mechanism:
    return _mechanism(record, lambda epsilon: {"epsilon": epsilon, **more}, *environment)


def _approximate(record: str, **more: object) -> Mechanism:
    return _pure(record, delta=DELTA, **more)


def _batches(epsilon: float) -> dict[str, Any]:
    """Above an epsilon of 1 the theorem has no window, and one play is the shortest."""
    return {"epsilon": epsilon} | ({"window": 1} if epsilon > 1 else {})


def _user(epsilon: float) -> AlgorithmFactory:
    return partial(a.online_ucb, epsilon=epsilon, delta=DELTA, calibration="exact", learner="ogd")


SUB_GAUSSIAN = partial(catalogue.linear, noise="gaussian")

GROUPS = {
    "rewards": {
        # Asi et al.
        "HTINF in batches": _mechanism("private_batched", _batches),
        "LDP-EXP3": _pure("ldp_exp3"),
        "experts as arms": _mechanism(
            "bandit_to_experts", lambda epsilon: {"base": partial(a.private_batched, base=a.htinf, **_batches(epsilon))}
        ),
        "local EXP4": _pure("local_exp4"),
        "batched EXP4": _approximate("batched_exp4"),
        # Wu et al. and those it compares with
        "PRM elimination": _pure("prm_elimination"),
        "PRM-UCB": _pure("prm_ucb"),
        "PRM-TS": _pure("prm_thompson"),
        "DP-SE": _pure("dp_se"),
        "AdaP-UCB": _pure("adap_ucb"),
        "AdaP-KLUCB": _pure("adap_kl_ucb"),
        "DPRSE": _pure("dprse"),
        "LDP-UCB": _pure("ldp_ucb"),
        "LDP-UCB, flipped bits": _pure("ldp_ucb", mechanism="randomized_response"),
    },
    "linear": {
        # Charisopoulos et al. and those it compares with; rewards lie in [-1, 1] where the name does not say otherwise
        "M1, sub-Gaussian rewards": _pure("robust_elimination", SUB_GAUSSIAN),
        "M1, rewards in [-1, 1]": _pure("robust_elimination"),
        "M2, sub-Gaussian rewards": _pure("robust_elimination", SUB_GAUSSIAN, model="M2"),
        "M2, rewards in [-1, 1]": _pure("robust_elimination", model="M2"),
        "phased elimination": _pure("phased_elimination"),
        "central, Laplace": _pure("private_elimination_laplace", delta=None, num_batches=3),
        "DP-DPE, Gaussian": _approximate("private_elimination_gaussian"),
        "bucket medians": _pure("median_elimination"),
        "trimmed means": _pure("trimmed_elimination"),
        # Jadbabaie et al.
        "Byzantine-UCB, reconstructed": _approximate("byzantine_ucb_reconstructed"),
        "Byzantine-UCB, zCDP": _approximate("byzantine_ucb_ours", calibration="zcdp"),
        "Byzantine-UCB, exact": _approximate("byzantine_ucb_ours", calibration="exact"),
        "Byzantine-UCB, increments": _approximate("byzantine_ucb_ours", calibration="exact", privacy="increment"),
    },
    "users": {
        # the locally private paper and those it compares with; code: that of Chowdhury and Zhou
        "OnlineUCB, printed": _approximate("online_ucb"),
        "OnlineUCB, noise of the code's LDP": _approximate("online_ucb_comparator_noise"),
        "OnlineUCB, exact": _approximate("online_ucb_ours", calibration="exact"),
        "OnlineUCB, reward only, classic": _approximate("online_ucb_ours", calibration="paper", private_features=False),
        "OnlineUCB, reward only, exact": _approximate("online_ucb_ours", calibration="exact", private_features=False),
        "doubling, exact": _mechanism("doubling", lambda epsilon: {"base": _user(epsilon)}),
        "combiner, exact": _mechanism(
            "bandit_combiner", lambda x: {"epsilon": x, "bases": [_user(x), partial(a.doubling, base=_user(x))]}
        ),
        "LDP-LinUCB, code": _approximate("ldp_linucb_code"),
        "LDP-LinUCB, constants recalled": _approximate("ldp_linucb"),
        "JDP-LinUCB, code": _approximate("jdp_linucb_code"),
        "JDP-LinUCB, code's scale, binary tree": _approximate("jdp_linucb_binary"),
        "JDP-LinUCB, constants recalled": _approximate("jdp_linucb"),
        "SDP-Amp, code": _approximate("shuffle_linucb_code", protocol="amplified", window=WINDOW),
        "SDP-Amp, constants recalled": _approximate("shuffle_linucb", window=WINDOW),
        "SDP-Vec, code": _approximate("shuffle_linucb_code", protocol="vector", window=WINDOW),
    },
}


AUDITED = 1.0  # the named epsilon at which each is audited
CONFIDENCE = 0.999  # of one audit: all of them are valid together with a probability of 96%
QUICKLY = ("LDP-UCB",)  # audited at quick size
ROUNDING = 1e-3  # of a composed epsilon, relative: it is rounded up, and bits flip with a multiple of 2^-23

ARMS = [0.7, 0.7, 0.75, 0.7, 0.7]
ON_ARMS = {
    "HTINF in batches": partial(a.private_batched, base=a.htinf), "PRM elimination": a.prm_elimination,
    "PRM-UCB": a.prm_ucb, "DP-SE": a.dp_se, "LDP-EXP3": a.ldp_exp3, "LDP-UCB": a.ldp_ucb,
}  # fmt: skip


def world_with_features(actions: tuple[tuple[float, ...], ...]) -> World:
    """Linear arms with rewards of 0 and 1, whose context is the features of all: bandits with contexts play them."""
    plain = linear_world(len(actions), "gaussian")

    def observe(params, state, draws, t):
        features = jnp.asarray(actions, draws.dtype)
        return jnp.broadcast_to(features, (*t.shape, *features.shape)), state

    def reward(params, state, draws, t, context, action):
        mean = params.means[action]
        return (draws.uniform(t) < mean).astype(mean.dtype)

    return plain._replace(observe=observe, reward=reward)


@factory
def shown_linear(*, actions: Matrix, theta: Vector) -> Environment:
    """Rewards are 1 with probability <a, theta>, else 0; every play shows `actions` [K, d]."""
    actions = in_unit_ball("actions", array("actions", actions, 2))
    theta = in_unit_ball("theta", array("theta", theta, 1, shape=(actions.shape[1],))[None])[0]
    means = actions @ theta
    if means.min() < 0 or means.max() > 1:
        raise ValueError(f"actions @ theta lies in [{means.min():g}, {means.max():g}]: give probabilities")
    world = world_with_features(tuple(map(tuple, actions.tolist())))
    facts = {
        "num_arms": len(actions), "dim": actions.shape[1], "actions": actions, "means": means, "feature_norm": 1.0,
        "contexts": "fixed", "reward_range": (0.0, 1.0), "shows": "fixed set",
    }  # fmt: skip
    return Environment(world, LinearParams(means, theta, 0.0), facts, None, {})


NUM_ARMS, DIM = 20, 5
_RNG = np.random.default_rng(20)


def _positive(rows: int) -> np.ndarray:
    """Directions (u, 1) / √2: any two of them have an inner product in [0, 1]."""
    return np.concatenate([unit(_RNG.normal(size=(rows, DIM - 1))), np.ones((rows, 1))], 1) / math.sqrt(2)


LINEAR = partial(shown_linear, actions=_positive(NUM_ARMS), theta=_positive(1)[0])
NOISE = 0.5  # rewards of 0 and 1 are sub-Gaussian with this scale
# Their noise is for rewards in [-1, 1]. On rewards in [0, 1] it spends half of the epsilon that they are given.
WIDE = {
    "M1": partial(a.robust_elimination, model="M1", presieve=True, noise_scale=NOISE),
    "M2": partial(a.robust_elimination, model="M2", presieve=True, noise_scale=NOISE),
    "central, Laplace": partial(a.private_elimination, mechanism="laplace", noise_scale=NOISE),
}
ONLINE = "OnlineUCB, reward only"
PAIRS = [("arms", "HTINF in batches", "PRM elimination"), ("arms", "LDP-EXP3", "LDP-UCB")]
PAIRS += [("linear", "M1", ONLINE), ("linear", "M2", ONLINE)]


def compute_spending(full: bool) -> dict[str, Any]:
    """For each mechanism what it spends at each named epsilon, and what an audit proves at the middle one."""
    rows = []
    for group, mechanisms in GROUPS.items():
        for label, mechanism in mechanisms.items():
            spent = {epsilon: privacy.ledger(*mechanism.build_case(epsilon)) for epsilon in NAMED}
            row = {"group": group, "mechanism": label} | {epsilon: one.epsilon for epsilon, one in spent.items()}
            row["bounded"] = mechanism.environment is None
            row["exact"] = all(x.mechanism in ("gaussian", "laplace") for x in spent[AUDITED].events)
            audited = full or label in QUICKLY
            row["audited"] = _audit_bound(mechanism, 200_000 if full else 2000) if audited else math.nan
            rows.append(row)
    return {"mechanisms": pd.DataFrame(rows)}


def _audit_bound(mechanism, runs: int) -> float:
    """The lower bound of an audit at the named epsilon, NaN where rewards have no bound to differ by."""
    if mechanism.environment is not None:
        return math.nan
    algorithm, environment = mechanism.build_case(AUDITED)
    claimed = float(algorithm.guarantee.spend(algorithm.params)[1])
    delta = claimed if claimed > 0 or math.isfinite(privacy.ledger(algorithm).epsilon) else DELTA
    return audit(algorithm, runs=runs, confidence=CONFIDENCE, delta=delta, environment=environment).epsilon_lower


def sweeps(full: bool) -> dict[str, Sweep]:
    horizon, seeds = (100_000, 50) if full else (1000, 4)
    wide = {label: partial(one, num_batches=batches(horizon)) for label, one in few(WIDE, full, ["M1"]).items()}
    linear = {ONLINE: partial(a.online_ucb, private_features=False, delta=DELTA), **wide}
    keys = tuple(f"{label}.epsilon" for label in linear)
    given = {f"{x:g}": (x, *(2 * x for _ in keys[1:])) for x in ([0.3, 1.0, 3.0, 10.0] if full else [0.3, 1.0])}
    arms, environment = few(ON_ARMS, full, list(ON_ARMS)[:2]), partial(e.bernoulli_arms, means=ARMS)
    epsilons = {"epsilon": [0.1, 0.3, 1.0] if full else [0.3, 1.0]}
    declared = {"arms": swept(arms, environment, horizon, seeds, grid=epsilons)}
    everyone = linear | {"LinUCB, not private": a.linucb}
    return declared | {"linear": swept(everyone, LINEAR, horizon, seeds, grid={keys: given})}


CUTS = (0.0, 0.1, 0.5, 0.9, 1.01, 1.5, 3.0, 100.0)


def draw(group: str, results: Results) -> plot.Plot:
    """The map of one group of mechanisms: what is spent over what is named."""
    rows = results["mechanisms"].query("group == @group")[::-1]  # the first at the top
    named = {f"{x:g}": rows[x] / x for x in NAMED} | {f"{AUDITED:g}, audit": rows["audited"] / AUDITED}
    parts = [rows[["mechanism", "bounded"]].assign(named=column, ratio=ratio) for column, ratio in named.items()]
    frame = pd.concat(parts, ignore_index=True)
    unlimited, there = np.isinf(frame["ratio"]), frame["ratio"].notna()
    # no audit where rewards have no bound to differ by, and of most at quick size
    text = frame["ratio"].map("{:.2f}".format).where(there, np.where(frame["bounded"], "", "none"))
    frame = frame.assign(ratio=frame["ratio"].mask(unlimited), text=text.mask(unlimited, "∞"), unlimited=unlimited)
    return plot.heatmap(
        frame.drop(columns="bounded"), "named", "mechanism", "ratio", text="text", hatched="unlimited",
        hatch="without limit", cuts=CUTS,
        names={"named": "named ε", "mechanism": ""}, width=6.0,
        caption=f"spent ε over named ε, δ = {DELTA:g} where there is one; last column: proven spent by an audit",
    )  # fmt: skip


def by_budget(name: str, results: Results) -> xr.Dataset:
    """One of the problems along `epsilon`, what is spent."""
    return results[name] if name == "arms" else with_numeric_key(results[name], f"{ONLINE}.epsilon", "epsilon")


CAPTIONS = {
    "arms": f"arms with rewards of 0 and 1, means {ARMS}; LDP: local, others central",
    "linear": f"{NUM_ARMS} fixed arms, d = {DIM}, rewards of 0 and 1; "
    "central: a trusted server, M1 and OnlineUCB local",
}


def claims(results: Results) -> Claims:
    yield from [_spending(row) for row in results["mechanisms"].to_dict("records")]
    for name in CAPTIONS:
        yield from by_value(by_budget(name, results), "epsilon", f"regret on {name} at ε = {{:g}} spent".format)
    for name, ours, theirs in PAIRS:
        final = final_regret(by_budget(name, results))
        if {ours, theirs} <= set(final.algorithm.values):
            yield Claim(f"{name}: regret of {ours} over that of {theirs}", "", ratios(final, ours, theirs))


def _spending(row: dict[Any, Any]) -> Claim:
    """What is spent beside its name: a verdict on what a paper was read to claim, at every epsilon it claims it for."""
    label, audited = row["mechanism"], row["audited"]
    source = GROUPS[row["group"]][label].source
    ratio = max((row[x] / x for x in NAMED if source.within(x)), default=math.nan)
    parts = [f"{row[x]:.3g} at {x:g}".replace("inf", "∞") for x in NAMED]
    parts += [] if math.isnan(audited) else [f"audited at least {audited:.3g} at {AUDITED:g}"]
    evidence: Evidence | None = None
    if source.read and (ratio <= 1 + ROUNDING or row["exact"]):
        evidence = Exact(ratio, at_most=1 + ROUNDING)
    elif source.read and source.within(AUDITED) and not math.isnan(audited):
        evidence = Interval("proven spent", audited, math.inf, at_most=AUDITED)
    return Claim(f"ε spent by {label}", source.quote_claim("at most what is named"), ", ".join(parts), evidence)


SPENT = partial(against, names={"epsilon": "spent ε"}, width=6.0)
PICTURES: dict[str, Any] = {group: partial(draw, group) for group in GROUPS}
PICTURES |= {f"regret-{key}": SPENT(partial(by_budget, key), "epsilon", caption=x) for key, x in CAPTIONS.items()}
STUDY = Study(__doc__, "all five papers", sweeps, PICTURES, claims, compute_spending)
