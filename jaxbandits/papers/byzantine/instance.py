"""The instance of this paper's studies: ten agents, ten fresh unit arms a play in four dimensions."""

from functools import partial

from jaxbandits import adversaries as v
from jaxbandits import algorithms as a
from jaxbandits import environments as e

NUM_AGENTS, NUM_ARMS, DIM = 10, 10, 4
FEDERATED = partial(e.federated_linear, num_agents=NUM_AGENTS, num_arms=NUM_ARMS, dim=DIM)

RULES = {
    "geometric median": partial(a.byzantine_ucb, aggregate="geometric_median"),
    "median of means": partial(a.byzantine_ucb, aggregate="median_of_means"),
    "coordinate median": partial(a.byzantine_ucb, aggregate="coordinate_median"),
    "trimmed mean": partial(a.byzantine_ucb, aggregate="trimmed_mean"),
    "Krum": partial(a.byzantine_ucb, aggregate="krum"),
    "mean": partial(a.byzantine_ucb, aggregate="mean"),
}


RATE = 0.1  # radius_scale where the bonus, not the blind first episode, is to set the regret


def target(scale):
    """The omniscient attack that points the vector away from theta."""
    return partial(v.byzantine, kind="target", scale=scale)


def honest(corruption, prob=1.0) -> float:
    """Agents that do not attack, on average over episodes: regret is summed over them.

    prob: of an attack in an episode.
    """
    return NUM_AGENTS - prob * int(corruption * NUM_AGENTS + 0.5)
