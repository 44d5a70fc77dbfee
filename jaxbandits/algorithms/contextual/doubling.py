"""The anytime form of "Improved rate for locally differentially private linear bandits", its Algorithm 7.

Axes: [E] epochs.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.declared import (
    STATIC,
    Base,
    BaseModels,
    Dim,
    Doc,
    Example,
    FeatureNorm,
    Horizon,
    Inside,
    NonNegative,
    NumArms,
)
from jaxbandits.mechanisms.composition import claimed_epsilon, scale_mechanism, sums_anew
from jaxbandits.mechanisms.gaussian import default_delta
from jaxbandits.numerics import count, pick, tree_where
from jaxbandits.protocol import Algorithm, Guarantee, Program, Span
from jaxbandits.typing import AlgorithmFactory, Numeric
from jaxbandits.validation import base_algorithm, base_arguments, factory

UNREACHED = 2**31 - 1  # plays before an epoch that no run reaches


class Params(NamedTuple):
    """The base's params in every epoch."""

    base: Any  # every leaf [E, ...]
    starts: Any  # [E] int32: plays before each epoch; the first is 0
    mechanism_scale: Numeric


@cache
def program(base: Program) -> Program:
    """The base's functions, with the base's state.

    Its time begins anew in every epoch. Its draws are those of the true play, whatever the epoch.
    """

    def params_at_play(params, t):
        """The base's params at play t, and the plays before its epoch."""
        starts = jnp.asarray(params.starts)
        epoch = count(starts < t) - 1
        own = jax.tree.map(lambda x: pick(jnp.asarray(x), epoch, axis=0), params.base)
        return scale_mechanism(own, params.mechanism_scale), pick(starts, epoch, axis=0)

    def init(params, draws):
        return base.init(params_at_play(params, jnp.int32(1))[0], draws.child("base"))

    def act(params, state, draws, t, context):
        own, start = params_at_play(params, t[0])
        return base.act(own, state, draws.child("base").shifted(start), t - start, context)

    def encode(params, note, draws, t, context, action, reward, play):
        own, start = params_at_play(params, t[0])
        return base.encode(own, note, draws.child("base").shifted(start), t - start, context, action, reward, play)

    def relay(params, draws, t, message, play):
        own, start = params_at_play(params, t)
        return base.relay(own, draws.child("base").shifted(start), t - start, message, play)

    def update(params, state, draws, t, note, message, used):
        own, start = params_at_play(params, t)
        after, released = base.update(own, state, draws.child("base").shifted(start), t - start, note, message, used)
        fresh = base.init(params_at_play(params, t + 1)[0], draws.child("init").shifted(t))
        ends = jnp.any(jnp.asarray(params.starts) == t)
        return tree_where(ends, fresh, after), released

    def diagnose(params, state):
        last = jax.tree.map(lambda x: jnp.asarray(x)[-1], params.base)
        return base.diagnose(scale_mechanism(last, params.mechanism_scale), state)

    default = Program._field_defaults["relay"]  # kept where it is the base's: it says that nobody relays
    own = default if base.relay is default else relay
    # in lockstep: a message of an earlier epoch would meet a later epoch's state
    return Program(init, act, encode, update, own, diagnose=diagnose, lockstep=True, float32_plays=base.float32_plays)


def one_of(spent: list[tuple[float, float]]) -> tuple[float, float]:
    """(epsilon, delta) that covers each of several: a user enters one of them, whichever it is."""
    epsilons, deltas = zip(*spent, strict=True)
    return max(epsilons), max(deltas)


def params_of_epochs(params: Params) -> list[Any]:
    """The base's params in each epoch."""
    tables = [jax.tree.map(lambda x, k=k: np.asarray(x)[k], params.base) for k in range(len(params.starts))]
    return [scale_mechanism(row, params.mechanism_scale) for row in tables]


def call_base(base: AlgorithmFactory, fixed: dict[str, Any], tuning: dict[str, Any]) -> Algorithm:
    """A base, called with the arguments that it names.

    It gets what it names of `fixed`, and of `tuning` what its partial leaves open; values that are None are left out.
    """
    known, bound = base_arguments(base)
    given = fixed | {key: value for key, value in tuning.items() if key not in bound}
    given = {key: value for key, value in given.items() if key in known and value is not None}
    algorithm = base_algorithm(base, **given)
    if algorithm.schedule != (Span(1, fixed["horizon"]),):
        raise ValueError(
            f"base = {algorithm.version[0]} plays windows or spans of its own; only a base of one play a window has "
            f"epochs of any length: for instance linucb or online_ucb"
        )
    if algorithm.version[0] == "delayed":
        raise ValueError("base = delayed keeps messages on their way, which a restart would lose: give its base alone")
    return algorithm


def stack_epochs(epochs: list[Algorithm], starts: list[int]) -> Params:
    """The params of several runs of one program, as rows: algorithm k plays from play starts[k] + 1 on."""
    base = jax.tree.map(lambda *rows: np.stack(rows), *(epoch.params for epoch in epochs))
    return Params(base, np.array(starts, np.int32), 1.0)


def one_epoch(algorithm: Algorithm) -> Algorithm:
    """The same run as a table of one row: it then shares its program with `doubling` of it."""
    params, guarantee = stack_epochs([algorithm], [0]), guarantee_of_epochs(algorithm.guarantee)
    return algorithm._replace(program=program(algorithm.program), params=params, guarantee=guarantee)


def pad_epochs(params: Params, epochs: int) -> Params:
    """A table with rows that are never reached."""
    more = epochs - len(params.starts)
    base = jax.tree.map(lambda x: np.concatenate([x, np.repeat(x[-1:], more, axis=0)]), params.base)
    return params._replace(base=base, starts=np.append(params.starts, np.full(more, UNREACHED, np.int32)))


def costliest(of_epochs: Sequence[Any], spend: Callable[[Any], tuple[float, float]]) -> Any:
    """What belongs to the epoch that spends most."""
    return max(of_epochs, key=lambda one: spend(one)[0])


def guarantee_of_epochs(base: Guarantee) -> Guarantee:
    """The base's guarantee, read from a table: that of its costliest row, at the largest delta of any.

    A user is in one play, hence in one row.
    """
    if base.model == "none":
        return base
    return base._replace(
        spend=lambda params: one_of([base.spend(row) for row in params_of_epochs(params)]),
        events=lambda params: sums_anew(base.events(costliest(params_of_epochs(params), base.spend))),
        scales=("mechanism_scale",) if base.scales else (),
    )


OGD = {"name": "online_ucb", "epsilon": 4.0, "learner": "ogd"}


@factory(
    example=Example({"base": {**OGD, "min_eigenvalue": 0.1}}, world="contexts"),
    source=""""Improved rate for locally differentially private linear bandits", Algorithm 7, recalled, since our copy
        of the paper lacks it: docs/formulas/ldp_contextual.md#doubling""",
)
def doubling(
    *,
    num_arms: NumArms,
    horizon: Annotated[Horizon, STATIC],
    base: Base,
    dim: Dim | None = None,
    feature_norm: FeatureNorm | None = None,
    models: BaseModels = None,
    power: NonNegative = 0.125,
    failure_prob: Inside | None = None,
) -> Annotated[Algorithm, Doc("Its guarantee is the base's: a user is in one epoch.")]:
    """Restart a base in epochs of 1, 2, 4, ... plays, so that it need not know how long it runs.

    Epoch k = 0, 1, ... plays a fresh base, tuned for 2^k plays, for 2^k plays; the last epoch is cut at the
    horizon. Nothing is kept from one epoch to the next, so that play t depends on the horizon through
    `failure_prob` only.

    Args:
        base: A factory of algorithms, or a partial of one that binds its other arguments. It must play one play a
            window, and its program must not depend on its horizon: `linucb` and `online_ucb` do. It is called with
            horizon = 2^k and, where it names them, num_arms, dim, feature_norm, failure_prob / ((k + 1) (k + 2)), which
            sums to failure_prob, and power. A failure_prob or power that a partial binds wins.
        feature_norm: The largest norm L of a feature, for the base. The default: the base's own.
        power: The paper's k, for the base: epoch k perturbs features where min_eigenvalue <= 2^(-k power).
        failure_prob: The failure probability of all epochs together. The default: 1 / horizon, and 1/2 at horizon 1.

    Raises:
        ValueError: For arguments outside these ranges, or where the base does not fit.

    Note:
        The base's rules hold for ties and for rewards that are not finite.

    >>> algorithm = jb.algorithms.doubling(num_arms=5, dim=3, horizon=100, base=jb.algorithms.linucb)
    >>> algorithm.params.starts.tolist()
    [0, 1, 3, 7, 15, 31, 63]
    """
    if failure_prob is None:
        failure_prob = 1 / max(horizon, 2)
    # delta is that of the whole run: an epoch's own horizon would give another
    tuning = {"power": power, "longest": horizon, "delta": default_delta(None, horizon), "models": models}
    epochs = []
    for k in range(horizon.bit_length()):
        fixed = {"num_arms": num_arms, "dim": dim, "feature_norm": feature_norm, "horizon": 2**k}
        epochs.append(call_base(base, fixed, tuning | {"failure_prob": failure_prob / ((k + 1) * (k + 2))}))
        if epochs[k].program is not epochs[0].program:
            raise ValueError(
                f"base = {epochs[0].version[0]} has another program for {2**k} plays than for one: doubling needs one "
                f"whose shapes do not depend on its horizon, for instance linucb or online_ucb"
            )
    first, params = epochs[0], stack_epochs(epochs, [2**k - 1 for k in range(len(epochs))])
    asked = claimed_epsilon(costliest(epochs, lambda epoch: epoch.guarantee.spend(epoch.params)))
    claim = guarantee_of_epochs(first.guarantee)._replace(claimed=asked)
    functions, schedule, version = program(first.program), (Span(1, horizon),), ("doubling", 1, (first.version,))
    return Algorithm(functions, schedule, params, claim, version, rewards=first.rewards, plays_on=first.plays_on)
