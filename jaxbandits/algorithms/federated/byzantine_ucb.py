"""Byzantine-UCB, Byzantine-UCB-DP and Byzantine-UCB-DP-MoM: Algorithm 1 of "Byzantine-robust federated linear bandits".

By Jadbabaie, Li, Qian and Tian. How N statistics become one is in `aggregation`, what agents share in `agents`, what
makes them private in `sent_noise`.

Axes: [L] plays, [N] agents, [A] arms, [d] features, [p] = d (d + 1) / 2 packed entries of a symmetric matrix.
"""

import math
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Unpack

import jax.numpy as jnp

from jaxbandits import declared
from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.aggregation import AGGREGATION_RULES, Crowd, Rule, whole
from jaxbandits.algorithms.federated.sent_noise import Drawing, make_sent_noise
from jaxbandits.declared import HOST, STATIC, Dim, Epsilon, Example, Inside, NonNegative, NumAgents, NumArms, Positive
from jaxbandits.estimators.middle_points import groups_of
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.numerics import added, count, left_out, matvec, tree_where
from jaxbandits.numerics.linear_algebra import inverse_above_floor, log_determinant, sweep_inverse
from jaxbandits.numerics.packed import pack, unpack
from jaxbandits.protocol import Algorithm, Guarantee, Program, Rewards, Span
from jaxbandits.random import Draws
from jaxbandits.typing import Array, Float, Int, Numeric, Scalar
from jaxbandits.validation import factory, number

Aggregate = Literal["geometric_median", "median_of_means", "mean", "coordinate_median", "krum", "trimmed_mean"]

MAX_NODE_SCALE = 1e15  # squared distances between noise of this scale stay below float32's 3e38


class Params(NamedTuple):
    constants: agents.EpisodeConstants
    num_attacked: Numeric  # N_1, the believed number of attackers
    num_groups: Numeric  # P
    episodes: Numeric  # K
    node_scale: Numeric  # s
    mechanism_scale: Numeric
    delta: Numeric
    sums: Any = ()  # of a form of `mechanisms.counter`: its own numbers
    threshold: Numeric | tuple[()] = ()  # of schedule="determinant"


class Unsent(NamedTuple):
    """What every agent has seen since the last round."""

    gram: Float[Array, "N p"]
    plays: Int[Array, ""]
    matrix: Float[Array, "d d"]  # Lambda of the last round, and how many rounds there were
    rounds: Int[Array, ""]


class State(NamedTuple):
    gram: Float[Array, "N p"]  # sums of accepted messages
    vector: Float[Array, "N d"]
    rest: Any  # what rounding left out of both, in a long run; otherwise ()
    noise: Array | tuple[()]  # of the mechanism: [levels, N, p + d] | [N, p + d] | () | of a counter [size, N, p + d]
    memory: tuple[Any, Any]  # of the aggregation rule: for matrices and for vectors
    group: Array | tuple[()]  # int32 [N] | ()
    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]  # Lambda_k^-1
    episode: Int[Array, ""]  # k in [1, K]
    refused: Int[Array, ""]  # messages counted as zero
    unsent: Any = ()  # Unsent | () of the fixed schedule


class Setup(NamedTuple):
    """What a program is made for."""

    num_agents: int
    dim: int
    window: int
    rule: Rule
    noise: tuple[Any, ...]  # of `Drawing.noise_functions`; () without privacy
    determinant: bool  # whether agents ask for a round instead of having one after every window

    @property
    def packed(self) -> int:
        """Entries p of a packed matrix."""
        return self.dim * (self.dim + 1) // 2


@cache
def program(
    num_agents: int, dim: int, window: int, aggregate: str, iterations: int, drawing: Drawing | None, determinant: bool
) -> Program:
    """drawing: of privacy noise. determinant: whether agents ask for a round instead of having one after every window.

    Draws: alg/init/groups, alg/update/gram and alg/update/vector (noise).
    """
    shape = num_agents, dim * (dim + 1) // 2 + dim
    noise = drawing.noise_functions(shape) if drawing else ()
    setup = Setup(num_agents, dim, window, AGGREGATION_RULES[aggregate](iterations), noise, determinant)

    def init(params, draws):
        return _begin(setup, params, draws)

    def act(params, state, draws, t, context):
        width = agents.episode_radius(params.constants, state.episode, draws.dtype)
        return agents.choose(context, state.theta, state.inverse, width), None, ()

    def encode(params, note, draws, t, context, action, reward, play):
        return agents.moments(context, action, reward, play)

    def update(params, state, draws, t, note, message, used):
        new = agents.accept(message, 1e4 * window)
        if drawing:
            new = agents.zero_large_messages(new, window)
        after, released = _refresh(setup, params, state, draws, t, pack(new.gram), new)
        going = sent = state.episode < whole(params.episodes)  # message K is never used
        if determinant:
            after, asked = _where_asked(setup, params, state, after, pack(new.gram))
            sent = going & asked
        after = tree_where(going, after, state)
        return after, tuple(jnp.where(sent, x, jnp.nan) for x in released) if drawing else ()

    def diagnose(params, state):
        rounds = state.unsent.rounds + jnp.int32(1) if determinant else params.episodes
        return {"bytes_sent": agents.bytes_of(dim, rounds, state.theta.dtype), "refused_messages": state.refused}

    return Program(init, act, encode, update, diagnose=diagnose)


def _begin(setup: Setup, params: Params, draws: Draws) -> State:
    """The state before the first play."""
    num_agents, dim, dtype = setup.num_agents, setup.dim, draws.dtype
    level, eye = agents.ridge(params.constants, jnp.int32(1), dtype), jnp.eye(dim, dtype=dtype)
    gram, vector = jnp.zeros((num_agents, setup.packed), dtype), jnp.zeros((num_agents, dim), dtype)
    group: Any = ()
    if setup.rule.grouped:
        uniforms = draws.child("groups").uniform(jnp.int32(0), (num_agents,))
        group = groups_of(uniforms, whole(params.num_groups))
    return State(
        gram=gram,
        vector=vector,
        rest=left_out((gram, vector), draws.long),
        noise=setup.noise[0](dtype) if setup.noise else (),
        memory=(setup.rule.begin(num_agents, setup.packed, dtype), setup.rule.begin(num_agents, dim, dtype)),
        group=group,
        theta=jnp.zeros(dim, dtype),
        inverse=eye / level,
        episode=jnp.int32(1),
        refused=jnp.int32(0),
        unsent=Unsent(gram, jnp.int32(0), level * eye, jnp.int32(0)) if setup.determinant else (),
    )


def _refresh(setup: Setup, params: Params, state: State, draws: Any, t: Any, gram: Any, new: Any) -> tuple[State, Any]:
    """The state after a round with the accepted messages `new`, `gram` packed; what of all sums the server sees."""
    sums, rest = added((state.gram, state.vector), state.rest, (gram, new.vector))
    seen, noise = _publish_sums(setup, params, state, draws, t, *sums)
    crowd = Crowd(params.num_attacked, params.num_groups, state.group)
    matrix, gram_memory = setup.rule.aggregate(seen[0], state.memory[0], crowd)
    target, vector_memory = setup.rule.aggregate(seen[1], state.memory[1], crowd)
    episode, dtype = state.episode + 1, gram.dtype
    level = agents.ridge(params.constants, episode, dtype)
    ridged = unpack(matrix) + level * jnp.eye(setup.dim, dtype=dtype)
    inverse = inverse_above_floor(ridged, agents.EIGENVALUE_FLOOR * level)
    after = state._replace(
        gram=sums[0],
        vector=sums[1],
        rest=rest,
        noise=noise,
        memory=(gram_memory, vector_memory),
        theta=matvec(inverse, target),
        inverse=inverse,
        episode=episode,
        refused=state.refused + count(~new.good),
    )
    return after, seen


def _publish_sums(
    setup: Setup, params: Params, state: State, draws: Draws, t: Array, gram: Array, vector: Array
) -> tuple[tuple[Any, Any], Any]:
    """The sums, under privacy with noise on every agent's, and the mechanism's state."""
    if not setup.noise:
        return (gram, vector), ()
    fresh = math.sqrt(2) * draws.child("gram").normal(t, gram.shape), draws.child("vector").normal(t, vector.shape)
    noise, total = setup.noise[1](params, state.noise, state.episode, jnp.concatenate(fresh, axis=1))
    scale = jnp.asarray(params.node_scale * params.mechanism_scale, gram.dtype)
    return (gram + scale * total[:, : setup.packed], vector + scale * total[:, setup.packed :]), noise


def _where_asked(setup: Setup, params: Params, state: State, after: State, gram: Array) -> tuple[State, Any]:
    """The state `after` a round where an agent asks for it, else the one that waits; and whether one asked.

    An agent asks when its own plays since the last round would change the determinant by enough.
    """
    unsent = state.unsent._replace(gram=state.unsent.gram + gram, plays=state.unsent.plays + jnp.int32(setup.window))
    own = unsent.matrix[None] + unpack(unsent.gram) / setup.num_agents
    growth = jnp.max(log_determinant(jnp.moveaxis(own, 0, -1))) - log_determinant(unsent.matrix)
    asked = growth * unsent.plays.astype(growth.dtype) > params.threshold
    nothing, matrix = jnp.zeros_like(gram), sweep_inverse(after.inverse)[0]
    fresh = Unsent(nothing, jnp.int32(0), matrix, state.unsent.rounds + jnp.int32(1))
    waiting = after._replace(memory=state.memory, theta=state.theta, inverse=state.inverse, unsent=unsent)
    return tree_where(asked, after._replace(unsent=fresh), waiting), asked


@factory(
    plays_on="agents",
    example=Example(
        {"window": 8, "privacy": "tree", "epsilon": 4.0},
        world=("federated", {"reward": "bounded", "theta_norm": 0.6, "noise_scale": 0.4}),
        message_adversary={"name": "byzantine", "corruption": 0.2, "kind": "target"},
        horizon=100,
    ),
    source="""Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits", Algorithm 1, Theorems 2, 6 and
        7; `docs/formulas/byzantine.md#algorithm`, `docs/formulas/byzantine.md#constants`,
        `docs/formulas/byzantine.md#aggregation-rules`, `docs/formulas/byzantine.md#privacy-noise`,
        `docs/formulas/byzantine.md#rounds-by-determinants`, `docs/formulas/byzantine.md#noise-of-a-mean`; of counters:
        `docs/formulas/counting.md`. Departures: `docs/deviations/byzantine.md`.""",
)
def byzantine_ucb(
    *,
    num_agents: NumAgents,
    num_arms: NumArms,
    dim: Dim,
    horizon: Annotated[agents.AgentsHorizon, STATIC],
    window: agents.WindowPlays = None,
    aggregate: Aggregate = "geometric_median",
    privacy: Literal[None, "tree", "increment", "counter"] = None,
    epsilon: Epsilon = math.inf,
    delta: Annotated[Inside | None, declared.Remedy("Gaussian noise has no pure guarantee: give delta > 0")] = None,
    calibration: Annotated[Literal["exact", "zcdp", "paper"], HOST] = "exact",
    node_scale: NonNegative | None = None,
    counter: Literal["blt", "tree", "honaker", "square_root", "banded"] = "blt",
    counter_error: Annotated[Literal["max", "mean"], HOST] = "mean",
    buffers: Annotated[int, declared.Ge(1), STATIC] = 4,
    schedule: Literal["fixed", "determinant"] = "fixed",
    threshold: Annotated[Positive | None, declared.LATER] = None,
    accounting: Annotated[Literal[None, "repaired", "claimed"], HOST] = None,
    constants: Annotated[agents.ConstantsKind, HOST] = "geometric_median",
    iterations: Annotated[int, declared.Ge(1), STATIC] = 8,
    **given: Unpack[agents.Schedule],
) -> Algorithm:
    """Linear bandits of N agents whose server aggregates their statistics robustly, and privately where wanted.

    The agents play one policy for an episode of `window` plays, then send sums of x x' and x r once. The server
    aggregates the cumulative sums and refreshes theta_k = Lambda_k^-1 b_k, with Lambda_k = Agg(V) + lambda_k I
    and b_k = Agg(v). An agent plays argmax <x, theta_k> + beta_k sqrt(x' Lambda_k^-1 x).

    Args:
        aggregate: How matrices, and apart from them vectors, of all agents become one. With N_1 =
            floor(corruption_bound N + 1/2): "geometric_median", by `iterations` Weiszfeld steps from the last weights
            or value; "median_of_means", the geometric median of the means of 3 N_1 <= N random groups (N_1 = 0: the
            mean); "mean"; "coordinate_median"; "trimmed_mean", without the N_1 smallest and largest of each coordinate;
            "krum", with max(1, N - N_1 - 2) neighbours (N_1 >= (N - 1) / 2, two at least, lets colluders be chosen).
        privacy: None: no noise. Otherwise noise of scale s on every agent's sums: "tree", by a binary tree as in the
            paper, "increment", on each message (less than a tree up to 16 episodes), or "counter", by a form of
            `mechanisms.counter`, whose noise is less than half of the tree's.
        epsilon: Privacy of one message of one agent; inf: no noise.
        delta: The delta of the privacy claim. The default: min(1e-3, 1 / horizon), which moves with the horizon of a
            sweep over horizons: bind it to compare them.
        calibration: How s follows from epsilon and delta: "exact" spends the claim; "zcdp" spends 2.96 of 4 at delta
            1e-3; "paper" is reconstructed and spends 0.32 of 4.
        node_scale: s itself. The default: from epsilon, delta and calibration.
        counter: The form, for privacy="counter" only. "square_root" keeps every draw: at most 1,024 episodes.
        counter_error: Whether the root mean square or the largest noise is least, for counter="blt".
        buffers: Of counter="blt".
        schedule: When there is a round. "fixed": after every window. "determinant": after a window at whose end an
            agent's plays since the last round, together with their number, have changed the determinant of Lambda by
            more than `threshold`, as in FedUCB. Everyone sees that time, and it follows from private data: then there
            is **no privacy guarantee**.
        threshold: For schedule="determinant" only: a round is asked for when log(det(Lambda + V_own / N) / det(Lambda))
            times the plays since the last round exceeds it.
        accounting: What is added to lambda_k for the noise of a mean over all agents, for aggregate="mean" under
            privacy. None: nothing. "repaired": a bound of its norm. "claimed": the same for one agent's noise, as
            FedUCB counts.
        constants: Of lambda_k and beta_k, whatever `aggregate` and `privacy` are (`theory.byzantine_ridge`,
            `theory.byzantine_radius`). The privacy terms of the latter two need privacy and a finite epsilon.
        corruption_bound: The share of attackers that the server believes in, at most 1/4 for "median_of_means".
        failure_prob: A failure probability at `ridge_scale` and `radius_scale` 1 alone: at the default scales the true
            parameter left some set of a run in 1,000 of 1,000 runs at 0.05 (`docs/reproductions/across.md`, coverage).
        iterations: Weiszfeld steps of an episode.

    Returns:
        Algorithm: Diagnostics: `bytes_sent` by an agent, 4 (d (d + 1) / 2 + d) in each episode whose message is used
            (the server broadcasts as much again), and `refused_messages`, those that counted as zero.

    Raises:
        ValueError: If an argument is out of range, or does not go with the others.

    Note:
        Ties of arms (within 1e-5, relatively) go to the lowest. A message that is not finite or not symmetric counts as
        zero. Both parts of a message are cut to norm 1e4 window; under privacy to window, and above window (1 + 1e-5)
        it counts as zero. Eigenvalues of Lambda_k are raised to 0.1 lambda_k. The last episode may be shorter: its
        message is never used.

        Under privacy neighbours differ in one message of one agent, and private is what the server aggregates.
        Rewards must lie in [-1, 1].

        `aggregate="mean"` is FedUCB (Dubey and Pentland 2020) with rounds at fixed times. Zhou and Chowdhury (2024)
        found that its own rounds tell private data, and that its noise is counted for one agent only; their repair has
        rounds every sqrt(horizon / num_agents) plays (`window`).

    >>> algorithm = jb.algorithms.byzantine_ucb(
    ...     num_agents=10, num_arms=10, dim=4, horizon=2000, privacy="tree", epsilon=4.0
    ... )
    >>> algorithm.schedule[0].slots, round(algorithm.params.node_scale, 1)
    (11, 66.0)
    >>> round(algorithm.guarantee.spend(algorithm.params)[0], 6)
    4.0
    """
    window = agents.window_of(horizon, window)
    delta = default_delta(delta, horizon)
    _refuse(aggregate, privacy, epsilon, node_scale, schedule, threshold, accounting)
    setting = {"num_agents": num_agents, "dim": dim, "horizon": horizon, "window": window}
    chosen = agents.constants_as_printed(constants, **setting, epsilon=epsilon, delta=delta, **given)
    attacked = _attackers(aggregate, given["corruption_bound"], num_agents)
    episodes, determinant = -(-horizon // window), schedule == "determinant"
    noise = make_sent_noise(privacy, episodes - 1, counter, counter_error, buffers) if privacy else None
    scale = noise.scale(window, epsilon, delta, calibration, node_scale) if noise else 0.0
    if scale > MAX_NODE_SCALE or chosen.shift > MAX_NODE_SCALE**2:
        wrong = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{wrong} needs numbers whose squares float32 cannot hold: raise epsilon or lower node_scale")
    if accounting is not None and noise and episodes > 1:
        level = agents.noise_ridge(accounting, num_agents, dim, scale, noise.draws()[1], given["failure_prob"])
        chosen = chosen._replace(shift=chosen.shift + level / chosen.ridge_scale)
    params = Params(
        constants=chosen,
        num_attacked=attacked,
        num_groups=max(1, 3 * attacked),
        episodes=episodes,
        node_scale=scale,
        mechanism_scale=1.0,
        delta=delta,
        sums=noise.form.params if noise and noise.form else (),
        threshold=() if threshold is None else number("threshold", threshold, 0.0, open_low=True),
    )
    steps = iterations if AGGREGATION_RULES[aggregate](iterations).iterative else 0
    functions = program(num_agents, dim, window, aggregate, steps, noise.drawing() if noise else None, determinant)
    claim = noise.claim() if noise and not determinant else Guarantee()
    rewards = Rewards(-1.0, 1.0) if noise else Rewards()
    return Algorithm(functions, (Span(window, episodes, whole=True),), params, claim, rewards=rewards)


def _refuse(
    aggregate: str, privacy: str | None, epsilon: Any, node_scale: Any, schedule: str, threshold: Any, accounting: Any
) -> None:
    """ValueError of arguments that exclude each other."""
    if (threshold is None) == (schedule == "determinant"):
        remedy = "give one > 0" if threshold is None else "leave it out"
        raise ValueError(f"threshold = {threshold!r} does not go with schedule = {schedule!r}: {remedy}")
    if accounting is not None and (aggregate != "mean" or privacy is None):
        raise ValueError(
            f"accounting = {accounting!r} counts the noise of a mean over all agents: give aggregate='mean' and privacy"
        )
    if privacy is None and (node_scale is not None or not math.isinf(epsilon)):
        wrong = f"epsilon = {epsilon!r}" if node_scale is None else f"node_scale = {node_scale!r}"
        raise ValueError(f"{wrong} adds no noise without privacy: give privacy='counter', 'tree' or 'increment'")


def _attackers(aggregate: str, corruption_bound: Scalar, num_agents: int) -> int:
    """N_1, or a ValueError where its groups cannot be formed."""
    attacked = agents.count_attackers(corruption_bound, num_agents)
    if aggregate == "median_of_means":
        number("corruption_bound", corruption_bound, 0.0, 0.25, remedy="median_of_means needs at most 1/4")
        if 3 * attacked > num_agents:
            raise ValueError(
                f"num_agents = {num_agents} cannot form 3 N_1 = {3 * attacked} groups: lower corruption_bound"
            )
    return attacked
