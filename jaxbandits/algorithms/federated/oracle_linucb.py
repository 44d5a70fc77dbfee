"""Oracle LinUCB: a server that knows who attacks and averages the others, without a price of robustness."""

from typing import Annotated, Unpack

from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.comparators import Params, abbasi_yadkori, program
from jaxbandits.declared import Dim, Doc, Example, NumAgents, NumArms
from jaxbandits.protocol import Algorithm, Rewards, Span
from jaxbandits.validation import factory


@factory(
    plays_on="agents",
    example=Example(
        {"window": 8, "corruption_bound": 0.2, "width": "abbasi_yadkori"},
        message_adversary={"name": "byzantine", "corruption": 0.2, "kind": "nonfinite"},
    ),
    source="""Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"; Abbasi-Yadkori et al. 2011;
        `docs/formulas/byzantine.md#linucb-comparators`.""",
)
def oracle_linucb(
    *,
    num_agents: NumAgents,
    num_arms: NumArms,
    dim: Dim,
    horizon: agents.AgentsHorizon,
    window: agents.WindowPlays = None,
    width: agents.WidthRule = "schedule",
    **given: Unpack[agents.Schedule],
) -> Annotated[Algorithm, Doc("Diagnostic: `bytes_sent` by an agent, as in `byzantine_ucb`.")]:
    """A server averages the messages of the honest agents, whom it knows: all but the first N_1.

    N_1 = floor(corruption_bound N + 1/2). Otherwise this is `byzantine_ucb` with aggregate "mean".

    Args:
        corruption_bound: The share of agents that is left out. Set it to the adversary's corruption.
        feature_spread: The paper's sigma. Used by width "schedule" only.
        ridge_scale: Multiplies lambda_k; the ridge itself with width "abbasi_yadkori".
        width: "schedule": lambda_k and beta_k of `byzantine_ucb` with its geometric-median constants. "abbasi_yadkori":
            over n averaged agents Lambda = W / n + (l / n) I, W being the sum of their x x' and l = ridge_scale, and
            radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + n t / (d l))) + sqrt(l d)) / sqrt(n) after t plays,
            with the model's bound sqrt(d) for the norm of theta.

    Note:
        Attacks of agents that are not left out are averaged like honest messages. A message that is not finite or
        not symmetric counts as zero. Ties (within 1e-5, relatively) go to the lowest arm. There is no privacy.

    >>> algorithm = jb.algorithms.oracle_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, corruption_bound=0.2)
    >>> algorithm.params.num_attacked
    2
    """
    window = agents.window_of(horizon, window)
    episodes = -(-horizon // window)
    setting = {"num_agents": num_agents, "dim": dim, "horizon": horizon, "window": window}
    constants = agents.constants_as_printed("geometric_median", **setting, **given)
    attacked = agents.count_attackers(given["corruption_bound"], num_agents)
    if width == "abbasi_yadkori":
        constants = abbasi_yadkori(num_agents - attacked, dim=dim, window=window, **given)
    functions, params = program(num_agents, dim, window, averaged=True), Params(constants, attacked, episodes)
    return Algorithm(functions, (Span(window, episodes, whole=True),), params, rewards=Rewards())
