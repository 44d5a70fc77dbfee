"""One window of a lane: who is asked in which order, and what each of them sees.

Axes: [P] plays of a window, [A] arms, [N] agents.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import lane_faults
from jaxbandits.numerics import fixed_sum, materialize
from jaxbandits.protocol import AdversaryView, Attack, Case, Program, World
from jaxbandits.random import Draws
from jaxbandits.recorder import Window
from jaxbandits.traced_once import Traces, trace_once
from jaxbandits.typing import Array


class Parts(NamedTuple):
    """What fixes the compiled code: functions and the float type. Equality is identity of what cached builders return.

    A user's function may read a value that has changed since it was compiled: then `traced` differs.
    """

    program: Program
    world: World
    reward_attack: Attack | None
    message_attack: Attack | None
    dtype: type[Any]
    arms: int | None = None  # actions lie in 0 .. arms - 1; None: the environment does not say
    traced: str = ""  # for a user's own parts: a hash of what they compute now (`sweeps.identity`)
    traces: Traces | None = None  # for sweeps: the traces that name a group (`sweeps.identity`) and make its programs
    long: bool = False  # as `Draws.long`
    settings: str = ""  # for sweeps: a hash of the settings that programs depend on (`sweeps.compilation.settings`)
    draws: Callable[..., Draws] = Draws  # for checks: random streams that note what is drawn


class Lane(NamedTuple):
    """Everything a lane carries."""

    plays: Any  # plays done, int32 (spans that are not full)
    next: Any  # index of the next checkpoint, int32 (spans that are not full)
    environment: Any
    reward_adversary: Any
    message_adversary: Any
    algorithm: Any
    record: Any  # Record
    nonfinite: Any  # int32 count of non-finite rewards seen, () without a reward adversary
    faults: Any  # lane_faults.Faults


def streams(parts: Parts, seed: Array) -> Draws:
    """The random streams of a lane."""
    return parts.draws(seed, "", parts.dtype, long=parts.long)


def offer(
    parts: Parts, case: Case, seed: Array, slots: int, lane: Lane, before: Any, limit: Any
) -> tuple[Lane, Window]:
    """Play a window of `slots` plays after `before`, at most `limit` (None: all); the record takes no part."""
    after, window = play_without_record(parts, case, seed, slots, lane._replace(record=()), before, limit)
    return after._replace(record=lane.record), window


@trace_once
def play_without_record(
    parts: Parts, case: Case, seed: Array, slots: int, lane: Lane, before: Any, limit: Any
) -> tuple[Lane, Window]:
    """`offer` for a lane without its record."""
    root = streams(parts, seed)
    environment, attack, alg = root.child("environment"), root.child("attack"), root.child("alg")
    program, world, params, tally = parts.program, parts.world, case.algorithm, parts.program.hints.tally
    t = before + 1 + jnp.arange(slots, dtype=jnp.int32)
    context, world_state = world.observe(case.environment, lane.environment, environment.child("context"), t)
    action, wanted, note = program.act(params, lane.algorithm, alg.child("act"), t, context)
    used: Any = slots if wanted is None else wanted
    used = used if limit is None else jnp.minimum(used, limit)
    play = jnp.arange(slots, dtype=jnp.int32) < used
    lane = lane._replace(faults=lane_faults.actions(lane.faults, parts.arms, t, action, play))
    truth = partial(world.truth, case.environment, world_state, t, context)
    if tally:
        reward, probabilities = _law(parts, case, world_state, truth)
        play = root.child("environment/tally").multinomial(before + 1, used, probabilities[action[0]])
        if parts.reward_attack is not None:
            bad = jnp.sum(jnp.where(jnp.isfinite(reward), 0, play), dtype=jnp.int32)
            lane = lane._replace(nonfinite=lane.nonfinite + bad)
    else:
        reward = world.reward(case.environment, world_state, environment.child("reward"), t, context, action)
        if slots > 1:  # the algorithm and the record read the rewards: materialized, they are drawn only once
            reward = materialize(reward)
    score = world.score(case.environment, world_state, t, context, action)
    if not tally:  # where the window plays one arm, clients and adversaries still see every play
        reward = jnp.broadcast_to(reward, (slots, *reward.shape[1:]))
        lane = lane._replace(faults=lane_faults.rewards(lane.faults, t, reward, play))
        action = jnp.broadcast_to(action, (slots, *action.shape[1:]))
    hits, nonfinite = [], lane.nonfinite
    reward_state, message_state = lane.reward_adversary, lane.message_adversary

    def adversary_view(stream: Draws, encode: Callable[..., Any] | None = None) -> AdversaryView:
        known, again = truth(), stream.child("reward")
        return AdversaryView(
            t=t, context=context, action=action, play=play, truth=known, params=params, state=lane.algorithm, note=note,
            sample=lambda other: world.reward(case.environment, world_state, again, t, context, other),
            encode=encode,
        )  # fmt: skip

    if parts.reward_attack is not None and not tally:
        stream, corrupt = root.child("contamination"), parts.reward_attack.corrupt
        view = adversary_view(stream)
        reward, hit, reward_state = corrupt(case.reward_adversary, reward_state, stream, t, reward, view)
        hits.append(hit)
        if slots > 1:  # the count here and the algorithm read the rewards: materialized, they are drawn only once
            reward = materialize(reward)
        bad = ~jnp.isfinite(reward) & play.reshape(play.shape + (1,) * (reward.ndim - 1))
        nonfinite = nonfinite + jnp.sum(bad, dtype=jnp.int32)
    sent = message = program.encode(params, note, alg.child("encode"), t, context, action, reward, play)
    if parts.message_attack is not None:

        def honest(draws: Draws, rewards: Array) -> Any:
            return program.encode(params, note, draws, t, context, action, rewards, play)

        view, corrupt = adversary_view(attack, honest), parts.message_attack.corrupt
        message, hit, message_state = corrupt(case.message_adversary, message_state, attack, t, message, view)
        hits.append(hit)
    last = before + used
    message = program.relay(params, alg.child("relay"), last, message, play)
    state, released = program.update(params, lane.algorithm, alg.child("update"), last, note, message, used)

    def nonfinite_pay() -> Array:
        return nonfinite_before(lane) if tally else lane_faults.spoils(reward, play) | nonfinite_before(lane)

    attacked = parts.message_attack is not None
    faults = lane_faults.state(lane.faults, sent, message, state, last, used, nonfinite_pay, attacked)
    regret = score.regret
    if regret is not None:
        regret = jnp.broadcast_to(regret, (slots, *regret.shape[1:]))
    if regret is not None and regret.ndim == 2:  # [P, N]: robust regret counts honest agents only
        for hit in hits:
            regret = jnp.where(hit, 0, regret)
        regret = fixed_sum(regret)
    lane = lane._replace(
        environment=world_state, reward_adversary=reward_state, message_adversary=message_state, algorithm=state,
        nonfinite=nonfinite, faults=faults,
    )  # fmt: skip
    return lane, Window(
        t=t, play=play, used=used, action=action, reward=reward, message=message, released=released, arm=score.arm,
        regret=regret,
    )  # fmt: skip


def nonfinite_before(lane: Lane) -> Array:
    """Whether an adversary paid anything that is not finite before: what follows is no fault of the algorithm."""
    return jnp.bool_(False) if isinstance(lane.nonfinite, tuple) else jnp.asarray(lane.nonfinite) > 0


def _law(parts: Parts, case: Case, world_state: Any, truth: Callable[[], Any]) -> tuple[Any, Any]:
    """The values [V] of rewards and their probabilities [K, V], where rewards are drawn as counts of their values."""
    world, attack = parts.world, parts.reward_attack
    if world.law is None or parts.message_attack is not None or (attack is not None and attack.law is None):
        needs = "an environment of few values, such as bernoulli_arms, no message_adversary"
        attacker = "a reward_adversary that adds few values, such as huber(kind='fixed')"
        raise ValueError(f"shortcut=True draws counts of values: it needs {needs}, and {attacker}: leave it out")
    values, probabilities = world.law(case.environment, world_state)
    law: Any = None if attack is None else attack.law
    return (values, probabilities) if law is None else law(case.reward_adversary, values, probabilities, truth())
