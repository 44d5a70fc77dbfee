"""What `ask` and `tell` of an agent cost, beside two bare jitted calls that compute the same.

    python benchmarks/agents.py [--plays 2000] [NAME ...]

On one core, CPU microseconds a play, the best of five turns each.
"""

import argparse
from collections.abc import Callable

import jax
import numpy as np
from measure import best_of, one_core

import jaxbandits as jb
from jaxbandits.ask_tell import ask_window, draws_of_learner, tell_window

SIZES = {
    "ucb1": {"num_arms": 10},
    "exp3": {"num_arms": 10},
    "ldp_ucb": {"num_arms": 10, "epsilon": 1.0},
    "linucb": {"num_arms": 10, "dim": 8},
}
ASKED = 1.5  # at most so many times two bare calls


def loops(name: str, plays: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """As many plays by an agent, and by bare jitted calls."""
    made = {"horizon": 10**6, **SIZES[name]}
    rng = np.random.default_rng(0)
    features = rng.normal(size=(plays, made["num_arms"], made["dim"])).astype(np.float32) if "dim" in made else None
    contexts = [None if features is None else features[i] / 4 for i in range(plays)]
    rewards = rng.random(plays).tolist()

    agent = jb.agent(name, **made)

    def by_agent() -> None:
        for context, reward in zip(contexts, rewards, strict=True):
            agent.ask(context)
            agent.tell(reward)

    program, seed = agent.algorithm.program, np.uint32(0)
    params = jax.tree.map(np.float32, agent.algorithm.params)

    @jax.jit
    def choose(params, learner, t, shown):
        action, _, note = ask_window(program, params, learner, draws_of_learner(seed), t, shown, 1)
        return action, note

    @jax.jit
    def learn(params, learner, t, shown, note, action, reward):
        return tell_window(program, params, learner, draws_of_learner(seed), t, shown, note, action, reward)[0]

    start = jax.jit(lambda: program.init(params, draws_of_learner(seed).child("init")))()

    def by_hand() -> None:
        learner = start
        for t, (context, reward) in enumerate(zip(contexts, rewards, strict=True), 1):
            now, shown = np.int32(t), () if context is None else context[None]
            action, note = choose(params, learner, now, shown)
            int(np.asarray(action)[0])
            learner = learn(params, learner, now, shown, note, action, np.array([reward], np.float32))
        jax.block_until_ready(learner)

    return by_agent, by_hand


def main() -> None:
    parser = argparse.ArgumentParser(description="What ask and tell cost beside two bare jitted calls.")
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(SIZES))
    parser.add_argument("--plays", type=int, default=2000)
    given = parser.parse_args()
    one_core()
    print(f"{'':10} {'agent':>8} {'by hand':>8} {'times':>6}   (asked: at most {ASKED})")
    for name in given.names:
        functions = loops(name, given.plays)
        for function in functions:
            function()
        ours, bare = (1e6 * seconds / given.plays for seconds in best_of(5, *functions))
        print(f"{name:10} {ours:8.1f} {bare:8.1f} {ours / bare:6.2f}")


if __name__ == "__main__":
    main()
