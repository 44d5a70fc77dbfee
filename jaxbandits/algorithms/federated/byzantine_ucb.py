"""Byzantine-UCB, Byzantine-UCB-DP and Byzantine-UCB-DP-MoM: Algorithm 1 of "Byzantine-robust federated linear bandits".

By Jadbabaie, Li, Qian and Tian. How N statistics become one is in `aggregation`, what agents share in `agents`.

Axes: [L] plays, [N] agents, [A] arms, [d] features, [p] = d (d + 1) / 2 packed entries of a symmetric matrix.
"""

import math
from functools import cache, partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax.numpy as jnp
import numpy as np

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Accounting,
    Constants,
    ConstantsKind,
    accept,
    believed_attackers,
    bounded,
    bytes_of,
    choose,
    moments,
    noise_ridge,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.algorithms.federated.agents import constants as _constants
from jaxbandits.algorithms.federated.aggregation import RULES, Crowd, whole
from jaxbandits.estimators.random_groups import groups_of
from jaxbandits.mechanisms.composition import gaussian_event, guarantee, view_released
from jaxbandits.mechanisms.counters.counter import ERRORS, form_of
from jaxbandits.mechanisms.counters.form import Given
from jaxbandits.mechanisms.counters.toeplitz import MOST_RELEASES
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.mechanisms.tree import CALIBRATIONS, FORMS, tree, tree_event, tree_levels, tree_scale
from jaxbandits.mechanisms.tree import node_scale as one_release
from jaxbandits.numerics import added, count, left_out, matvec, tree_where
from jaxbandits.numerics.linear_algebra import floored_inverse, log_determinant, sweep_inverse
from jaxbandits.numerics.packed import pack, unpack
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.typing import Array, Float, Int, Scalar
from jaxbandits.validation import choice, factory, integer, number

Aggregate: TypeAlias = Literal[
    "geometric_median", "median_of_means", "mean", "coordinate_median", "trimmed_mean", "krum"
]

COUNTERS = {
    "blt": "running sums by a buffered Toeplitz counter",
    "tree": "running sums by a binary tree",
    "honaker": "running sums by a tree with Honaker's estimates",
    "square_root": "running sums by the square-root Toeplitz form",
    "banded": "running sums by a banded Toeplitz form",
}
MAX_NODE_SCALE = 1e15  # squared distances between noise of this scale stay below float32's 3e38


class Params(NamedTuple):
    constants: Constants
    # N_1, the believed number of attackers
    num_attacked: Any
    # P
    num_groups: Any
    # K
    episodes: Any
    # s
    node_scale: Any
    # multiplies s
    mechanism_scale: Any
    # of the privacy claim
    delta: Any
    # of a form of `mechanisms.counter`: its own numbers
    sums: Any = ()
    # of schedule="determinant"
    threshold: Any = ()


class Unsent(NamedTuple):
    """What every agent has seen since the last round."""

    gram: Float[Array, "N p"]
    plays: Int[Array, ""]
    # Lambda of the last round, and how many rounds there were
    matrix: Float[Array, "d d"]
    rounds: Int[Array, ""]


class State(NamedTuple):
    # sums of accepted messages
    gram: Float[Array, "N p"]
    vector: Float[Array, "N d"]
    # what rounding left out of both, in a long run; otherwise ()
    rest: Any
    # of the mechanism: [levels, N, p + d] | [N, p + d] | () | of a counter [size, N, p + d]
    noise: Any
    # of the aggregation rule: for matrices and for vectors
    memory: tuple[Any, Any]
    # int32 [N] | ()
    group: Any
    theta: Float[Array, " d"]
    # Lambda_k^-1
    inverse: Float[Array, "d d"]
    # k in [1, K]
    episode: Int[Array, ""]
    # messages counted as zero
    refused: Int[Array, ""]
    # Unsent | () of the fixed schedule
    unsent: Any = ()


def _noise(privacy: Any, levels: int, sums: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """dtype -> state; params, state, n, fresh normals -> state, the noise of the sum of n messages."""
    if privacy == "counter":
        begin, move, noise = sums

        def add(params, state, n, fresh):
            state = move(params.sums, state, Given(fresh), n, shape)
            return state, noise(params.sums, state, n)

        return lambda dtype: begin(shape, dtype), add
    mechanism = tree(2**levels - 1, shape, privacy)
    return mechanism.init, lambda params, state, n, fresh: mechanism.release(state, n, fresh)


@cache
def program(
    num_agents: int,
    dim: int,
    window: int,
    aggregate: str,
    iterations: int,
    privacy: Any,
    levels: int,
    sums: Any = None,
    determinant: bool = False,
) -> Program:
    """levels: nodes of a tree that a message can lie in; 0 without a tree. sums: begin, move and noise of a counter.

    determinant: whether agents ask for a round instead of having one after every window.

    Draws: alg/init/groups, alg/update/gram and alg/update/vector (noise).
    """
    rule, packed = RULES[aggregate](iterations), dim * (dim + 1) // 2
    begin_noise, add_noise = _noise(privacy, levels, sums, (num_agents, packed + dim)) if privacy else (None, None)

    def init(params, draws):
        dtype, level = draws.dtype, ridge(params.constants, jnp.int32(1), draws.dtype)
        group = ()
        if rule.grouped:
            uniforms = draws.child("groups").uniform(jnp.int32(0), (num_agents,))
            group = groups_of(uniforms, whole(params.num_groups))
        sums = jnp.zeros((num_agents, packed), dtype), jnp.zeros((num_agents, dim), dtype)
        return State(
            gram=sums[0],
            vector=sums[1],
            rest=left_out(sums, draws.long),
            noise=begin_noise(dtype) if begin_noise else (),
            memory=(rule.begin(num_agents, packed, dtype), rule.begin(num_agents, dim, dtype)),
            group=group,
            theta=jnp.zeros(dim, dtype),
            inverse=jnp.eye(dim, dtype=dtype) / level,
            episode=jnp.int32(1),
            refused=jnp.int32(0),
            unsent=Unsent(
                jnp.zeros((num_agents, packed), dtype),
                jnp.int32(0),
                level * jnp.eye(dim, dtype=dtype),
                jnp.int32(0),
            )
            if determinant
            else (),
        )

    def act(params, state, draws, t, context):
        width = radius(params.constants, state.episode, draws.dtype)
        return choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return moments(context, action, reward, play)

    def publish(params, state, draws, t, gram, vector):
        """The statistics the server aggregates: the sums, under privacy with noise on every agent's."""
        if add_noise is None:
            return gram, vector, ()
        fresh = (
            math.sqrt(2) * draws.child("gram").normal(t, gram.shape),
            draws.child("vector").normal(t, vector.shape),
        )
        noise, total = add_noise(params, state.noise, state.episode, jnp.concatenate(fresh, axis=1))
        scale = jnp.asarray(params.node_scale * params.mechanism_scale, gram.dtype)
        return gram + scale * total[:, :packed], vector + scale * total[:, packed:], noise

    def asked(params, unsent):
        """Whether an agent's own plays since the last round would change the determinant by enough."""
        own = unsent.matrix[None] + unpack(unsent.gram) / num_agents
        growth = jnp.max(log_determinant(jnp.moveaxis(own, 0, -1))) - log_determinant(unsent.matrix)
        return growth * unsent.plays.astype(growth.dtype) > params.threshold

    def update(params, state, draws, t, note, message, used):
        new = accept(message, 1e4 * window)
        if privacy:
            new = bounded(new, window)
        sums, rest = added((state.gram, state.vector), state.rest, (pack(new.gram), new.vector))
        gram, vector, noise = publish(params, state, draws, t, *sums)
        crowd = Crowd(params.num_attacked, params.num_groups, state.group)
        matrix, gram_memory = rule.aggregate(gram, state.memory[0], crowd)
        target, vector_memory = rule.aggregate(vector, state.memory[1], crowd)
        episode = state.episode + 1
        level = ridge(params.constants, episode, gram.dtype)
        inverse = floored_inverse(unpack(matrix) + level * jnp.eye(dim, dtype=gram.dtype), FLOOR * level)
        after = State(
            gram=sums[0],
            vector=sums[1],
            rest=rest,
            noise=noise,
            memory=(gram_memory, vector_memory),
            group=state.group,
            theta=matvec(inverse, target),
            inverse=inverse,
            episode=episode,
            refused=state.refused + count(~new.good),
        )
        going = state.episode < whole(params.episodes)  # message K is never used
        if determinant:
            seen = state.unsent._replace(
                gram=state.unsent.gram + pack(new.gram), plays=state.unsent.plays + jnp.int32(window)
            )
            round_now = asked(params, seen)
            sent = Unsent(
                jnp.zeros_like(seen.gram), jnp.int32(0), sweep_inverse(inverse)[0], state.unsent.rounds + jnp.int32(1)
            )
            waiting = after._replace(memory=state.memory, theta=state.theta, inverse=state.inverse, unsent=seen)
            after = tree_where(round_now, after._replace(unsent=sent), waiting)
        after = tree_where(going, after, state)
        going = going & round_now if determinant else going
        return after, (jnp.where(going, gram, jnp.nan), jnp.where(going, vector, jnp.nan)) if privacy else ()

    def diagnose(params, state):
        rounds = state.unsent.rounds + jnp.int32(1) if determinant else params.episodes
        return {"bytes_sent": bytes_of(dim, rounds, state.theta.dtype), "refused_messages": state.refused}

    return Program(init, act, encode, update, diagnose=diagnose)


def _events(form: Any, params: Params):
    """The server refuses what exceeds the window in norm, so that bounds a message; the last episode's is not used."""
    scale, window = float(params.node_scale * params.mechanism_scale), float(params.constants.window)
    return (tree_event(window, int(params.episodes) - 1, scale, form=form),)


def _counted_events(what: str, column_norm: float, params: Params):
    """All noisy sums as one release: a message moves them by the column norm times what it moves one."""
    scale, window = float(params.node_scale * params.mechanism_scale), float(params.constants.window)
    return (gaussian_event(what, math.sqrt(6) * window * column_norm, scale),)


def worst_noise(privacy: str, releases: int, sums: Any) -> float:
    """Most draws in one agent's noise, over all releases."""
    if sums:
        return float(np.max(sums.deviation(np.arange(1, releases + 1)) ** 2))
    return float(tree_levels(releases) if privacy == "tree" else releases)


def noise_share(nodes: float, algorithm: Algorithm) -> float:
    """Privacy noise against data at the end of a run.

    The noise: an eigenvalue 2 s sqrt(d m / N) of the mean agent's noise, of m = `nodes` draws. The data: T / d, an
    eigenvalue of the mean agent's information.
    """
    p, config = algorithm.params, algorithm.config
    dim = config["dim"]
    noise = 2 * p.node_scale * p.mechanism_scale * math.sqrt(dim * nodes / config["num_agents"])
    return float(noise * dim / config["horizon"])


@factory
def byzantine_ucb(
    *,
    num_agents: int,
    num_arms: int,
    dim: int,
    horizon: int,
    window: int | None = None,
    aggregate: Aggregate = "geometric_median",
    privacy: Literal["tree", "increment", "counter"] | None = None,
    epsilon: Scalar = math.inf,
    delta: Scalar | None = None,
    calibration: Literal["exact", "zcdp", "paper"] = "exact",
    node_scale: Scalar | None = None,
    counter: Literal["blt", "tree", "honaker", "square_root", "banded"] = "blt",
    counter_error: Literal["mean", "max"] = "mean",
    buffers: int = 4,
    schedule: Literal["fixed", "determinant"] = "fixed",
    threshold: Scalar | None = None,
    accounting: Accounting | None = None,
    constants: ConstantsKind = "geometric_median",
    corruption_bound: Scalar = 0.0,
    feature_spread: Scalar = 1.0,
    noise_scale: Scalar = 0.5,
    failure_prob: Scalar = 0.05,
    ridge_scale: Scalar = 0.1,
    radius_scale: Scalar = 0.03,
    iterations: int = 8,
) -> Algorithm:
    """Linear bandits of N agents whose server aggregates their statistics robustly, and privately where wanted.

    The agents play one policy for an episode of `window` plays, then send sums of x x' and x r once. The server
    aggregates the cumulative sums and refreshes theta_k = Lambda_k^-1 b_k, with Lambda_k = Agg(V) + lambda_k I
    and b_k = Agg(v). An agent plays argmax <x, theta_k> + beta_k sqrt(x' Lambda_k^-1 x).

    Parameters
    ----------
    num_agents : int
        N, at least 1 [static]. Filled in from the environment.
    num_arms : int
        Arms of every decision set, at least 2 [static]. Filled in from the environment.
    dim : int
        Features d, at least 1 [static]. Filled in from the environment.
    horizon : int
        Total plays T of every agent. Filled in from the run.
    window : int, optional
        Plays L of an episode, in [1, horizon] [static]. None: max(1, round(0.25 sqrt(horizon))).
    aggregate : str
        How matrices, and apart from them vectors, of all agents become one [static]. With N_1 =
        floor(corruption_bound N + 1/2): "geometric_median", by `iterations` Weiszfeld steps from the last
        weights or value; "median_of_means", the geometric median of the means of 3 N_1 <= N random groups (N_1
        = 0: the mean); "mean"; "coordinate_median"; "trimmed_mean", without the N_1 smallest and largest of
        each coordinate; "krum", with max(1, N - N_1 - 2) neighbours (N_1 >= (N - 2) / 2 lets colluders be
        chosen).
    privacy : {"tree", "increment", "counter"}, optional
        None: no noise. Otherwise noise of scale s on every agent's sums: "tree", by a binary tree as in the paper,
        "increment", on each message (less than a tree up to 16 episodes), or "counter", by a form of
        `mechanisms.counter`, whose noise is less than half of the tree's [static].
    epsilon : float
        Privacy of one message of one agent, in (0, inf]; inf: no noise.
    delta : float, optional
        The delta of the privacy claim, in (0, 1). The default: min(1e-3, 1 / horizon), which moves with the horizon of
        a sweep over horizons: bind it to compare them.
    calibration : {"exact", "zcdp", "paper"}
        How s follows from epsilon and delta: "exact" spends the claim; "zcdp" spends 2.96 of 4 at delta 1e-3;
        "paper" is reconstructed and spends 0.32 of 4.
    node_scale : float, optional
        s >= 0 itself. None: from epsilon, delta and calibration.
    counter : {"blt", "tree", "honaker", "square_root", "banded"}
        The form, for privacy="counter" only [static]. "square_root" keeps every draw: at most 1,024 episodes.
    counter_error : {"mean", "max"}
        Whether the root mean square or the largest noise is least, for counter="blt".
    buffers : int
        Of counter="blt", at least 1 [static].
    schedule : {"fixed", "determinant"}
        When there is a round [static]. "fixed": after every window. "determinant": after a window at whose end an
        agent's plays since the last round, together with their number, have changed the determinant of Lambda by more
        than `threshold`, as in FedUCB. Everyone sees that time, and it follows from private data: then there is **no
        privacy guarantee**.
    threshold : float, optional
        > 0, for schedule="determinant" only: a round is asked for when log(det(Lambda + V_own / N) / det(Lambda)) times
        the plays since the last round exceeds it.
    accounting : {"repaired", "claimed"}, optional
        What is added to lambda_k for the noise of a mean over all agents, for aggregate="mean" under privacy [data].
        None: nothing. "repaired": a bound of its norm. "claimed": the same for one agent's noise, as FedUCB counts.
    constants : {"geometric_median", "dp", "median_of_means"}
        Of lambda_k and beta_k, whatever `aggregate` and `privacy` are (`theory.byzantine_ridge`,
        `theory.byzantine_radius`). The privacy terms of the latter two need privacy and a finite epsilon.
    corruption_bound : float
        The share of attackers that the server believes in, in [0, 1/2), or [0, 1/4] for "median_of_means".
    feature_spread : float
        The paper's sigma, >= 0.
    noise_scale : float
        The rewards' noise, the paper's R, >= 0.
    failure_prob : float
        In (0, 1). A failure probability at `ridge_scale` and `radius_scale` 1 alone: at the default scales the true
        parameter left some set of a run in 1,000 of 1,000 runs at 0.05 (`docs/reproductions/across.md`, coverage).
    ridge_scale : float
        > 0. Multiplies lambda_k.
    radius_scale : float
        >= 0. Multiplies beta_k.
    iterations : int
        Weiszfeld steps of an episode, at least 1 [static].

    Returns
    -------
    Algorithm
        Diagnostics: `bytes_sent` by an agent, 4 (d (d + 1) / 2 + d) in each episode whose message is used (the
        server broadcasts as much again), and `refused_messages`, those that counted as zero.

    Raises
    ------
    ValueError
        If an argument is out of range, or does not go with the others.

    Notes
    -----
    Ties of arms (within 1e-5, relatively) go to the lowest. A message that is not finite or not symmetric
    counts as zero. Both parts of a message are cut to norm 1e4 window; under privacy to window, and above
    window (1 + 1e-5) it counts as zero. Eigenvalues of Lambda_k are raised to 0.1 lambda_k. The last episode
    may be shorter: its message is never used.

    Under privacy neighbours differ in one message of one agent, and private is what the server aggregates.
    Rewards must lie in [-1, 1].

    `aggregate="mean"` is FedUCB (Dubey and Pentland 2020) with rounds at fixed times. Zhou and Chowdhury (2024) found
    that its own rounds tell private data, and that its noise is counted for one agent only; their repair has rounds
    every sqrt(horizon / num_agents) plays (`window`).

    References
    ----------
    Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Algorithm 1, Theorems 2, 6 and 7;
    `docs/formulas/byzantine.md#algorithm`, `docs/formulas/byzantine.md#constants`,
    `docs/formulas/byzantine.md#aggregation-rules`, `docs/formulas/byzantine.md#privacy-noise`,
    `docs/formulas/byzantine.md#rounds-by-determinants`, `docs/formulas/byzantine.md#noise-of-a-mean`;
    of counters: `docs/formulas/counting.md`. Departures: `docs/deviations/byzantine.md`.

    Examples
    --------
    >>> import jaxbandits as jb
    >>> algorithm = jb.algorithms.byzantine_ucb(
    ...     num_agents=10, num_arms=10, dim=4, horizon=2000, privacy="tree", epsilon=4.0
    ... )
    >>> algorithm.schedule[0].slots, round(algorithm.params.node_scale, 1)
    (11, 66.0)
    >>> round(algorithm.guarantee.spend(algorithm.params)[0], 6)
    4.0
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    choice("aggregate", aggregate, RULES)
    choice("privacy", privacy, (None, *FORMS, "counter"))
    choice("counter", counter, COUNTERS)
    choice("counter_error", counter_error, ERRORS)
    buffers = integer("buffers", buffers, 1)
    choice("calibration", calibration, CALIBRATIONS)
    choice("schedule", schedule, ("fixed", "determinant"))
    choice("accounting", accounting, (None, *get_args(Accounting)))
    if (threshold is None) == (schedule == "determinant"):
        remedy = "give one > 0" if threshold is None else "leave it out"
        raise ValueError(f"threshold = {threshold!r} does not go with schedule = {schedule!r}: {remedy}")
    if threshold is not None:
        threshold = number("threshold", threshold, 0.0, open_low=True)
    if accounting is not None and (aggregate != "mean" or privacy is None):
        raise ValueError(
            f"accounting = {accounting!r} counts the noise of a mean over all agents: give aggregate='mean' and privacy"
        )
    iterations = integer("iterations", iterations, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    remedy = "Gaussian noise has no pure guarantee: give delta > 0"
    delta = number("delta", default_delta(delta, horizon), 0.0, 1.0, open_low=True, open_high=True, remedy=remedy)
    if privacy is None and (node_scale is not None or not math.isinf(epsilon)):
        given = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{given} adds no noise without privacy: give privacy='counter', 'tree' or 'increment'")
    chosen = _constants(
        constants,
        num_agents=num_agents,
        dim=dim,
        horizon=horizon,
        window=window,
        corruption_bound=corruption_bound,
        feature_spread=feature_spread,
        noise_scale=noise_scale,
        failure_prob=failure_prob,
        ridge_scale=ridge_scale,
        radius_scale=radius_scale,
        epsilon=epsilon,
        delta=delta,
    )
    attacked = believed_attackers(corruption_bound, num_agents)
    if aggregate == "median_of_means":
        number("corruption_bound", corruption_bound, 0.0, 0.25, remedy="median_of_means needs at most 1/4")
        if 3 * attacked > num_agents:
            raise ValueError(
                f"num_agents = {num_agents} cannot form 3 N_1 = {3 * attacked} groups: lower corruption_bound"
            )
    episodes = -(-horizon // window)
    releases, sums = episodes - 1, None
    if privacy == "counter":
        if counter == "square_root" and releases > MOST_RELEASES:
            raise ValueError(
                f"counter = 'square_root' keeps every draw, of at most {MOST_RELEASES} episodes; here are {releases}: "
                "give counter='blt', whose noise is the same to 0.2%"
            )
        sums = form_of(counter, max(releases, 1), counter_error, buffers, 1, 1, None, None, 0.5)
    scale = 0.0
    if node_scale is not None:
        scale = number("node_scale", node_scale, 0.0)
    elif sums:
        scale = sums.column_norm * one_release(window, epsilon, delta, calibration) if releases else 0.0
    elif privacy == "tree" or privacy == "increment":
        scale = tree_scale(window, releases, epsilon, delta, calibration=calibration, form=privacy)
    if scale > MAX_NODE_SCALE or chosen.shift > MAX_NODE_SCALE**2:
        given = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{given} needs numbers whose squares float32 cannot hold: raise epsilon or lower node_scale")
    if accounting is not None and privacy and releases:
        draws = worst_noise(privacy, releases, sums)
        level = noise_ridge(accounting, num_agents, dim, float(scale), draws, float(failure_prob))
        chosen = chosen._replace(shift=chosen.shift + level / chosen.ridge_scale)
    params = Params(
        constants=chosen,
        num_attacked=attacked,
        num_groups=max(1, 3 * attacked),
        episodes=episodes,
        node_scale=scale,
        mechanism_scale=1.0,
        delta=delta,
        sums=sums.params if sums else (),
        threshold=() if threshold is None else threshold,
    )
    steps = iterations if RULES[aggregate](iterations).iterative else 0
    levels = sums.size if sums else tree_levels(releases) if privacy == "tree" else 0
    static = (num_agents, dim, window, aggregate, steps, privacy, levels)
    determinant = schedule == "determinant"
    claim = Guarantee()
    if privacy and not determinant:
        nodes = tree_levels(releases) / 2 if privacy == "tree" else releases
        events: Any = partial(_events, privacy)
        if sums:
            nodes = float(np.mean(sums.deviation(np.arange(1, max(releases, 1) + 1)) ** 2)) if releases else 0.0
            events = partial(_counted_events, COUNTERS[counter], sums.column_norm if releases else 0.0)
        claim = guarantee("federated", "message", events, view_released, delta=lambda params: params.delta)
        claim = claim._replace(noise_share=partial(noise_share, nodes))
    return Algorithm(
        program=program(*static, (sums.begin, sums.move, sums.noise) if sums else None, determinant),
        schedule=(Span(window, episodes, whole=True),),
        params=params,
        guarantee=claim,
        version=(
            "byzantine_ucb",
            5,
            (num_arms, *static, *((counter,) if sums else ()), *((schedule,) if determinant else ())),
        ),
        config={},
        rewards=Rewards(-1.0, 1.0) if privacy else Rewards(),
    )
