"""Isolated LinUCB: agents that never communicate, the comparator without federation."""

from typing import Annotated, Unpack

from jaxbandits.algorithms.federated import agents
from jaxbandits.algorithms.federated.comparators import abbasi_yadkori, program
from jaxbandits.declared import Dim, Doc, Example, NumAgents, NumArms
from jaxbandits.protocol import Algorithm, Rewards, Span
from jaxbandits.validation import factory


@factory(
    plays_on="agents",
    example=Example({"window": 8}),
    source="""Jadbabaie, Li, Qian and Tian, "Byzantine-robust federated linear bandits"; Abbasi-Yadkori et al. 2011;
        `docs/formulas/byzantine.md#linucb-comparators`.""",
)
def isolated_linucb(
    *,
    num_agents: NumAgents,
    num_arms: NumArms,
    dim: Dim,
    horizon: agents.AgentsHorizon,
    window: agents.WindowPlays = None,
    width: agents.WidthRule = "schedule",
    **given: Unpack[agents.Schedule],
) -> Annotated[Algorithm, Doc("Diagnostic: `bytes_sent`, 0.")]:
    """Every agent runs LinUCB on its own plays and refreshes its estimate once an episode.

    Attacks on messages change nothing.

    Args:
        corruption_bound: The share of attackers that the schedule allows for. Used by width "schedule" only.
        feature_spread: The paper's sigma. Used by width "schedule" only.
        ridge_scale: Multiplies lambda_k; the ridge itself with width "abbasi_yadkori".
        width: "schedule": lambda_k and beta_k of `byzantine_ucb` with its geometric-median constants. "abbasi_yadkori":
            ridge l = ridge_scale and radius_scale (R sqrt(2 log(1 / failure_prob) + d log(1 + t / (d l))) + sqrt(l d))
            after t plays, with the model's bound sqrt(d) for the norm of theta.

    Note:
        An episode of an agent whose sums are not finite counts as zero. Ties (within 1e-5, relatively) go to the
        lowest arm. There is no privacy.

    >>> jb.algorithms.isolated_linucb(num_agents=10, num_arms=10, dim=4, horizon=2000, window=20).schedule[0].repeats
    100
    """
    window = agents.window_of(horizon, window)
    setting = {"num_agents": num_agents, "dim": dim, "horizon": horizon, "window": window}
    params = agents.constants_as_printed("geometric_median", **setting, **given)
    if width == "abbasi_yadkori":
        params = abbasi_yadkori(1, dim=dim, window=window, **given)
    schedule = (Span(window, -(-horizon // window), whole=True),)
    return Algorithm(program(num_agents, dim, window, averaged=False), schedule, params, rewards=Rewards())
