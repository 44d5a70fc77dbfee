"""A private algorithm of one's own: epsilon-greedy on rewards that every client randomises before it sends them.

python examples/my_private_algorithm.py              # what it spends, an audit, and a check
jaxbandits run examples/my_private_algorithm.toml    # its regret, beside others
cd examples && jaxbandits check my_private_algorithm:one_budget && jaxbandits audit my_private_algorithm:one_budget
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp

import jaxbandits as jb
from jaxbandits.declared import Epsilon, Horizon, NonNegative, NumArms
from jaxbandits.mechanisms import guarantee, laplace_event, laplace_scale
from jaxbandits.mechanisms.composition import view_message
from jaxbandits.numerics import argmax
from jaxbandits.protocol import Algorithm, Program, Span
from jaxbandits.validation import factory


class Params(NamedTuple):
    noise_scale: Any  # of the Laplace noise on one reward: 1 / epsilon
    exploration: Any
    mechanism_scale: Any  # 1; multiplies all privacy noise, so that tests can turn it off


class State(NamedTuple):
    mean: Any  # [K], of noisy rewards: all the server ever sees
    pulls: Any  # [K] int32


@cache
def program(num_arms: int) -> Program:
    def init(params, draws):
        return State(jnp.zeros(num_arms, draws.dtype), jnp.zeros(num_arms, jnp.int32))

    def act(params, state, draws, t, context):
        chance = jnp.minimum(1, params.exploration * num_arms / t[0].astype(draws.dtype))
        explore = draws.child("coin").uniform(t[0]) < chance
        anywhere = (draws.child("arm").uniform(t[0]) * num_arms).astype(jnp.int32)
        action = jnp.where(explore, anywhere, argmax(state.mean))
        return jnp.full(t.shape, action), None, action

    def encode(params, note, draws, t, context, action, reward, play):
        # The client. The claim rests on these two lines: whatever the reward is, it is brought into [0, 1] (NaN
        # counts as 0), so two rewards differ by at most 1; the noise has the scale that `events` states.
        inside = jnp.clip(jnp.where(jnp.isnan(reward[0]), 0, reward[0]), 0, 1)
        return inside + params.mechanism_scale * params.noise_scale * draws.laplace(t[0])

    def update(params, state, draws, t, note, message, used):
        # The server: it reads the message, never the reward. A message may be attacked on its way.
        message = jnp.where(jnp.isfinite(message), message, 0)
        pulls = state.pulls.at[note].add(1)
        step = (message - state.mean[note]) / pulls[note].astype(message.dtype)
        return State(state.mean.at[note].add(step), pulls), ()  # nothing is released beyond the actions

    return Program(init, act, encode, update)


def events(params):
    """The releases that one reward enters: its own report, once, with sensitivity 1. `spend` follows from this."""
    scale = params.noise_scale * params.mechanism_scale
    return (laplace_event("reward in [0, 1] of one play", 1.0, scale),)


@factory
def private_greedy(
    *, num_arms: NumArms, horizon: Horizon, epsilon: Epsilon, exploration: NonNegative = 5.0
) -> Algorithm:
    """Play the best noisy mean, or with probability min(1, exploration * K / t) any arm."""
    params = Params(laplace_scale(1.0, epsilon), exploration, 1.0)
    # local model: the view of the claim is what clients send; the neighbours differ in one reward
    claim = guarantee("local", "reward", events, view_message)
    return Algorithm(program(num_arms), (Span(1, horizon),), params, claim)


# The command line calls a factory with what the environment fixes; what remains is bound here.
one_budget = partial(private_greedy, epsilon=1.0)


if __name__ == "__main__":
    algorithm = private_greedy(num_arms=3, horizon=1000, epsilon=1.0)
    print(jb.privacy.ledger(algorithm))  # what one reward costs
    print(jb.audit(algorithm, runs=100_000))  # how much of that an attack can prove
    print(jb.check(partial(private_greedy, epsilon=1.0), audit=True))  # what breaks the contract: nothing
