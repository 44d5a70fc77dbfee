"""One window of a lane: who is asked in which order, and what each of them sees.

Axes: [P] plays of a window, [A] arms, [N] agents.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import lane_faults
from jaxbandits.numerics import fixed_sum, materialize
from jaxbandits.protocol import AdversaryView, Attack, Case, Program, World
from jaxbandits.random import Draws
from jaxbandits.recorder import Window


class Parts(NamedTuple):
    """What fixes the compiled code: functions and the float type. Equality is identity of cached builders.

    A user's function may read a value that has changed since it was compiled: `traced` tells the two apart.
    """

    program: Program
    world: World
    reward_attack: Attack | None
    message_attack: Attack | None
    dtype: Any
    arms: int | None = None  # actions lie in 0 .. arms - 1; None: the environment does not say
    traced: str = ""  # of a user's own parts: the hash of what they compute now (`sweeps.traced`)


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
    faults: Any  # watch.Faults


def streams(parts: Parts, seed) -> Draws:
    return Draws(seed, "", parts.dtype)


def offer(parts: Parts, case: Case, seed, slots: int, lane: Lane, before, limit) -> tuple[Lane, Window]:
    """One window of `slots` plays after `before`, at most `limit` of them played (None: all, without a mask)."""
    root = streams(parts, seed)
    environment, attack, alg = root.child("environment"), root.child("attack"), root.child("alg")
    program, world, params = parts.program, parts.world, case.algorithm
    t = before + 1 + jnp.arange(slots, dtype=jnp.int32)
    context, world_state = world.observe(case.environment, lane.environment, environment.child("context"), t)
    action, wanted, note = program.act(params, lane.algorithm, alg.child("act"), t, context)
    used: Any = slots if wanted is None else wanted
    used = used if limit is None else jnp.minimum(used, limit)
    play = jnp.arange(slots, dtype=jnp.int32) < used
    lane = lane._replace(faults=lane_faults.actions(lane.faults, parts.arms, t, action, play))
    if program.hints.tally:
        return _tallied(parts, case, root, lane, world_state, before, used, t, context, action, note)
    reward = world.reward(case.environment, world_state, environment.child("reward"), t, context, action)
    score = world.score(case.environment, world_state, t, context, action)
    # one arm for the window: a reward for each of its plays, and clients and adversaries see an action a play
    reward = jnp.broadcast_to(reward, (slots, *reward.shape[1:]))
    lane = lane._replace(faults=lane_faults.rewards(lane.faults, t, reward, play))
    action = jnp.broadcast_to(action, (slots, *action.shape[1:]))
    hits, nonfinite = [], lane.nonfinite
    reward_state, message_state = lane.reward_adversary, lane.message_adversary

    def seen(stream):
        truth = world.truth(case.environment, world_state, t, context)
        again = stream.child("reward")
        return AdversaryView(
            t, context, action, play, truth, params, lane.algorithm, note,
            lambda other: world.reward(case.environment, world_state, again, t, context, other),
        )  # fmt: skip

    if parts.reward_attack is not None:
        stream = root.child("contamination")
        reward, hit, reward_state = parts.reward_attack.corrupt(
            case.reward_adversary, reward_state, stream, t, reward, seen(stream)
        )
        hits.append(hit)
        if slots > 1:  # read twice, by the count here and by the algorithm: drawn once
            reward = materialize(reward)
        bad = ~jnp.isfinite(reward) & play.reshape(play.shape + (1,) * (reward.ndim - 1))
        nonfinite = nonfinite + jnp.sum(bad, dtype=jnp.int32)
    sent = message = program.encode(params, note, alg.child("encode"), t, context, action, reward, play)
    if parts.message_attack is not None:
        message, hit, message_state = parts.message_attack.corrupt(
            case.message_adversary, message_state, attack, t, message, seen(attack)
        )
        hits.append(hit)
    last = before + used
    message = program.relay(params, alg.child("relay"), last, message, play)
    state, released = program.update(params, lane.algorithm, alg.child("update"), last, note, message, used)
    faults = lane_faults.state(
        lane.faults, sent, message, state, last, used,
        lambda: lane_faults.spoils(reward, play) | spoiled_before(lane), attacked=parts.message_attack is not None,
    )  # fmt: skip
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
    return lane, Window(t, play, used, action, reward, message, released, score.arm, regret)


def spoiled_before(lane: Lane):
    """Whether an adversary has paid anything that is not finite: what follows from it is no fault of the algorithm."""
    return jnp.bool_(False) if isinstance(lane.nonfinite, tuple) else lane.nonfinite > 0


def _tallied(parts, case, root, lane, world_state, before, used, t, context, action, note):
    """The rest of a window whose rewards are drawn as counts of their values: same law, another path."""
    program, world, params, alg = parts.program, parts.world, case.algorithm, root.child("alg")
    attack = parts.reward_attack
    if world.law is None or parts.message_attack is not None or (attack is not None and attack.law is None):
        raise ValueError(
            "shortcut=True draws counts of values: it needs an environment of few values, such as bernoulli_arms, no "
            "message_adversary, and a reward_adversary that adds few values, such as huber(kind='fixed'): leave it out"
        )
    values, probabilities = world.law(case.environment, world_state)
    if attack is not None:
        truth = world.truth(case.environment, world_state, t, context)
        values, probabilities = attack.law(case.reward_adversary, values, probabilities, truth)
    plays = root.child("environment/tally").multinomial(before + 1, used, probabilities[action[0]])
    nonfinite = lane.nonfinite
    if attack is not None:
        nonfinite = nonfinite + jnp.sum(jnp.where(jnp.isfinite(values), 0, plays), dtype=jnp.int32)
    message = program.encode(params, note, alg.child("encode"), t, context, action, values, plays)
    last = before + used
    message = program.relay(params, alg.child("relay"), last, message, plays)
    state, released = program.update(params, lane.algorithm, alg.child("update"), last, note, message, used)
    lane = lane._replace(nonfinite=nonfinite)
    faults = lane_faults.state(lane.faults, message, message, state, last, used, lambda: spoiled_before(lane))
    score = world.score(case.environment, world_state, t, context, action)
    lane = lane._replace(environment=world_state, algorithm=state, faults=faults)
    return lane, Window(t, plays, used, action, values, message, released, score.arm, score.regret)
