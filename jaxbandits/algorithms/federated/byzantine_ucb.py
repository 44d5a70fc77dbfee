"""Byzantine-UCB, Byzantine-UCB-DP and Byzantine-UCB-DP-MoM (Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear
bandits", Algorithm 1).

Axes: [L] plays, [N] agents, [A] arms, [d] features, [p] = d (d + 1) / 2 packed entries of a symmetric matrix.
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.algorithms.federated.agents import (
    FLOOR,
    Constants,
    accept,
    believed_attackers,
    bounded,
    bytes_of,
    choose,
    floored_inverse,
    moments,
    radius,
    ridge,
    sizes,
)  # fmt: skip
from jaxbandits.algorithms.federated.agents import constants as _constants
from jaxbandits.algorithms.federated.aggregation import RULES, Crowd, whole
from jaxbandits.estimators.packing import pack, unpack
from jaxbandits.estimators.random_groups import groups_of
from jaxbandits.mechanisms.composition import guarantee, view_released
from jaxbandits.mechanisms.tree import CALIBRATIONS, FORMS, tree, tree_event, tree_levels, tree_scale
from jaxbandits.numerics import count, matvec
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.validation import choice, factory, integer, number

MOST_NOISE = 1e15  # node scale: squared distances of noise stay below float32's 3e38


class Params(NamedTuple):
    constants: Constants
    num_attacked: Any  # N_1, believed
    num_groups: Any  # P
    episodes: Any  # K
    node_scale: Any  # s
    mechanism_scale: Any  # multiplies s
    delta: Any  # of the privacy claim


class State(NamedTuple):
    gram: Any  # [N, p] sums of accepted messages
    vector: Any  # [N, d]
    noise: Any  # of the mechanism: [levels, N, p + d] | [N, p + d] | ()
    memory: Any  # of the aggregation rule: matrices', vectors'
    group: Any  # [N] int32 | ()
    theta: Any  # [d]
    inverse: Any  # [d, d] Lambda_k^-1
    episode: Any  # [] int32, k in [1, K]
    refused: Any  # [] int32 messages counted as zero


@cache
def program(num_agents: int, dim: int, window: int, aggregate: str, iterations: int, privacy, levels: int) -> Program:
    """levels: nodes a message can lie in; 0 but for trees. Draws: alg/init/groups, alg/update/gram and vector (noise)."""
    rule, packed = RULES[aggregate](iterations), dim * (dim + 1) // 2
    mechanism = tree(2**levels - 1, (num_agents, packed + dim), privacy) if privacy else None

    def init(params, draws):
        dtype, level = draws.dtype, ridge(params.constants, jnp.int32(1), draws.dtype)
        group = ()
        if rule.grouped:
            uniforms = draws.child("groups").uniform(jnp.int32(0), (num_agents,))
            group = groups_of(uniforms, whole(params.num_groups))
        return State(
            jnp.zeros((num_agents, packed), dtype), jnp.zeros((num_agents, dim), dtype),
            mechanism.init(dtype) if mechanism else (),
            (rule.begin(num_agents, packed, dtype), rule.begin(num_agents, dim, dtype)), group,
            jnp.zeros(dim, dtype), jnp.eye(dim, dtype=dtype) / level, jnp.int32(1), jnp.int32(0),
        )  # fmt: skip

    def act(params, state, draws, t, context):
        width = radius(params.constants, state.episode, draws.dtype)
        return choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return moments(context, action, reward, play)

    def publish(params, state, draws, t, gram, vector):
        """The statistics the server aggregates: the sums, under privacy with noise on every agent's."""
        if mechanism is None:
            return gram, vector, ()
        fresh = (
            math.sqrt(2) * draws.child("gram").normal(t, gram.shape),
            draws.child("vector").normal(t, vector.shape),
        )
        noise, total = mechanism.release(state.noise, state.episode, jnp.concatenate(fresh, axis=1))
        scale = jnp.asarray(params.node_scale * params.mechanism_scale, gram.dtype)
        return gram + scale * total[:, :packed], vector + scale * total[:, packed:], noise

    def update(params, state, draws, t, note, message, used):
        new = accept(message, 1e4 * window)
        if privacy:
            new = bounded(new, window)
        sums = state.gram + pack(new.gram), state.vector + new.vector
        gram, vector, noise = publish(params, state, draws, t, *sums)
        crowd = Crowd(params.num_attacked, params.num_groups, state.group)
        matrix, gram_memory = rule.aggregate(gram, state.memory[0], crowd)
        target, vector_memory = rule.aggregate(vector, state.memory[1], crowd)
        episode = state.episode + 1
        level = ridge(params.constants, episode, gram.dtype)
        inverse = floored_inverse(unpack(matrix) + level * jnp.eye(dim, dtype=gram.dtype), FLOOR * level)
        after = State(
            *sums, noise, (gram_memory, vector_memory), state.group, matvec(inverse, target), inverse, episode,
            state.refused + count(~new.good),
        )  # fmt: skip
        going = state.episode < whole(params.episodes)  # message K is never used
        after = jax.tree.map(lambda new, old: jnp.where(going, new, old), after, state)
        return after, (jnp.where(going, gram, jnp.nan), jnp.where(going, vector, jnp.nan)) if privacy else ()

    def diagnose(params, state):
        return {"bytes_sent": bytes_of(dim, params.episodes, state.theta.dtype), "refused_messages": state.refused}

    return Program(init, act, encode, update, diagnose=diagnose)


def _events(form: str, params: Params):
    """The server refuses what exceeds the window in norm, so that bounds a message; the last episode's is not used."""
    scale, window = float(params.node_scale * params.mechanism_scale), float(params.constants.window)
    return (tree_event(window, int(params.episodes) - 1, scale, form=form),)


def noise_share(algorithm: Algorithm) -> float:
    """Privacy noise against data at the end: an eigenvalue 2 s sqrt(d m / N) of the mean agent's noise (m nodes: half of a
    tree's levels, all increments) over T / d, that of the mean agent's information."""
    p, config = algorithm.params, algorithm.config
    releases, dim = int(p.episodes) - 1, config["dim"]
    nodes = tree_levels(releases) / 2 if config["privacy"] == "tree" else releases
    noise = 2 * p.node_scale * p.mechanism_scale * math.sqrt(dim * nodes / config["num_agents"])
    return float(noise * dim / config["horizon"])


@factory
def byzantine_ucb(
    *, num_agents, num_arms, dim, horizon, window=None, aggregate="geometric_median", privacy=None, epsilon=math.inf,
    delta=1e-3, calibration="exact", node_scale=None, constants="geometric_median", corruption_bound=0.0,
    feature_spread=1.0, noise_scale=0.5, failure_prob=0.05, ridge_scale=0.1, radius_scale=0.03, iterations=8,
) -> Algorithm:  # fmt: skip
    """N agents play one policy for an episode of `window` plays, then send sums of x x' and x r once; the server aggregates
    the cumulative sums and refreshes theta_k = Lambda_k^-1 b_k, Lambda_k = Agg(V) + lambda_k I, b_k = Agg(v).

    Agent i plays argmax <x, theta_k> + beta_k sqrt(x' Lambda_k^-1 x), ties (within 1e-5, relatively) to the lowest arm. A
    message that is not finite or not symmetric counts as zero; both parts are cut to norm 1e4 window, under privacy to
    window (above window (1 + 1e-5) it counts as zero). Eigenvalues of Lambda_k are raised to 0.1 lambda_k. The last episode
    may be shorter: its message is never used.

    window [static]: L in [1, horizon], None: max(1, round(0.25 sqrt(horizon))).
    aggregate [static], matrices and vectors apart, N_1 = floor(corruption_bound N + 1/2): "geometric_median" by `iterations`
    >= 1 [static] Weiszfeld steps from the last weights or value; "median_of_means", the geometric median of the means of
    3 N_1 <= N random groups (N_1 = 0: the mean); "mean"; "coordinate_median"; "trimmed_mean" without the N_1 smallest and
    largest of each coordinate; "krum" with max(1, N - N_1 - 2) neighbours (N_1 >= (N - 2) / 2 lets colluders be chosen).
    privacy [static]: None; "tree" or "increment", noise of node scale s on every agent's sums, by a binary tree or on each
    message (less noise up to 16 episodes). s: node_scale >= 0, None: from epsilon in (0, inf], delta in (0, 1) and calibration,
    "exact" (spends the claim), "zcdp" (spends 2.96 of 4 at delta 1e-3) or "paper" (reconstructed; 0.32 of 4). Neighbours differ
    in one message of one agent; private is what the server aggregates. Rewards must lie in [-1, 1].
    constants: "geometric_median", "dp" or "median_of_means": lambda_k and beta_k of `theory.byzantine_ridge` and
    `byzantine_radius`, whatever aggregate and privacy are, times ridge_scale > 0 and radius_scale >= 0; the privacy terms of the
    latter two need privacy and a finite epsilon. corruption_bound: the share of attackers the server believes in, in [0, 1/2)
    ([0, 1/4] for median_of_means). feature_spread, noise_scale >= 0: the paper's sigma and R. failure_prob in (0, 1).
    Raises ValueError outside. Diagnostics: `bytes_sent` by an agent, 4 (d (d + 1) / 2 + d) in each episode whose message is
    used (the server broadcasts as much again), and `refused_messages`.
    Source: specification of Byzantine-robust federated bandits, sections 2 to 4, 7 and 10.

    >>> import jaxbandits as jb
    >>> made = jb.algorithms.byzantine_ucb(num_agents=10, num_arms=10, dim=4, horizon=2000, privacy="tree", epsilon=4.0)
    >>> made.schedule[0].slots, round(made.params.node_scale, 1), round(made.guarantee.spend(made.params)[0], 6)
    (11, 62.7, 4.0)
    """
    num_agents, num_arms, dim, horizon, window = sizes(num_agents, num_arms, dim, horizon, window)
    choice("aggregate", aggregate, RULES)
    choice("privacy", privacy, (None, *FORMS))
    choice("calibration", calibration, CALIBRATIONS)
    iterations = integer("iterations", iterations, 1)
    epsilon = number("epsilon", epsilon, 0.0, open_low=True, finite=False, remedy="use float('inf') for no noise")
    remedy = "Gaussian noise has no pure guarantee: give delta > 0"
    delta = number("delta", delta, 0.0, 1.0, open_low=True, open_high=True, remedy=remedy)
    if privacy is None and (node_scale is not None or not math.isinf(epsilon)):
        given = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{given} adds no noise without privacy: give privacy='tree' or 'increment'")
    chosen = _constants(
        constants, num_agents=num_agents, dim=dim, horizon=horizon, window=window, corruption_bound=corruption_bound,
        feature_spread=feature_spread, noise_scale=noise_scale, failure_prob=failure_prob, ridge_scale=ridge_scale,
        radius_scale=radius_scale, epsilon=epsilon, delta=delta,
    )  # fmt: skip
    attacked = believed_attackers(corruption_bound, num_agents)
    if aggregate == "median_of_means":
        number("corruption_bound", corruption_bound, 0.0, 0.25, remedy="median_of_means needs at most 1/4")
        if 3 * attacked > num_agents:
            raise ValueError(
                f"num_agents = {num_agents} cannot form 3 N_1 = {3 * attacked} groups: lower corruption_bound"
            )
    episodes = -(-horizon // window)
    scale = 0.0
    if node_scale is not None:
        scale = number("node_scale", node_scale, 0.0)
    elif privacy:
        scale = tree_scale(window, episodes - 1, epsilon, delta, calibration=calibration, form=privacy)
    if scale > MOST_NOISE or chosen.shift > MOST_NOISE**2:
        given = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{given} needs numbers whose squares float32 cannot hold: raise epsilon or lower node_scale")
    params = Params(chosen, attacked, max(1, 3 * attacked), episodes, scale, 1.0, delta)
    static = (
        num_agents, dim, window, aggregate, iterations if RULES[aggregate](iterations).iterative else 0, privacy,
        tree_levels(episodes - 1) if privacy == "tree" else 0,
    )  # fmt: skip
    claim = Guarantee()
    if privacy:
        events = partial(_events, privacy)
        claim = guarantee("federated", "message", events, view_released, delta=lambda params: params.delta)
        claim = claim._replace(noise_share=noise_share)
    schedule = (Span(window, episodes, whole=True),)
    return Algorithm(
        program(*static),
        schedule,
        params,
        claim,
        ("byzantine_ucb", 3, (num_arms, *static)),
        {},
        rewards=Rewards(-1.0, 1.0) if privacy else Rewards(),
    )
