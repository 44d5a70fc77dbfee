"""LinUCB in the shuffle model, a comparator of "Improved rate for locally differentially private linear bandits".

Chowdhury and Zhou 2022. Draws are listed in `shuffle_statistics`.
"""

from typing import Annotated, Unpack

from jaxbandits.algorithms.contextual.arguments import Budget, Protocol, WindowPlays, setting, ucb_algorithm
from jaxbandits.algorithms.contextual.shuffle_statistics import batch, shuffle_part
from jaxbandits.declared import Dim, Doc, Example, Horizon, NumArms
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory(
    plays_on="decision set",
    example=Example({"protocol": "vector", "window": 7, "epsilon": 2.0, "radius_scale": 0.2}),
    source="""Chowdhury and Zhou 2022 (the theory presets are recalled); docs/formulas/ldp_contextual.md#shuffle-model,
        docs/formulas/ldp_contextual.md#vector-code and docs/formulas/ldp_contextual.md#reference-presets; "exact" is
        ours, docs/formulas/ldp_contextual.md#exact-presets""",
)
def shuffle_linucb(
    *, num_arms: NumArms, dim: Dim, horizon: Horizon, protocol: Protocol = None, window: WindowPlays = None,
    **given: Unpack[Budget],
) -> Annotated[Algorithm, Doc("Its guarantee is in the shuffle model, one user.")]:  # fmt: skip
    """LinUCB in the shuffle model: users send noisy messages, and a shuffler hides who sent which.

    The arm of the largest <x, theta> + w sqrt(x' P x) is played, with P = (V + rho I)^-1 and theta = P u from
    the noisy sums V and u, which are refreshed after every batch of users.

    Args:
        protocol: What users send. The default: "vector" with "exact", "amplified" with the others.

            "amplified": noise is added to x x' and x y, as in `ldp_linucb`, and the shuffler permutes the messages.

            "vector": each coordinate v in [-1, 1], in units of its largest value, is sent as floor((v + 1) g) +
            Bernoulli(fraction) + Bin(b, 1/4) with g = max(2 sqrt W, d, 4), W the window, and the server sees the sums.
        window: Users W of a batch, at most `horizon`. The default: max(20, ceil sqrt(T)) with "exact", 20 with the
            others, at most T.
        preset: Noise, ridge and width, with R = 1/2. The default: "exact", which alone spends what it is given.

            "exact": ridge and width as in `ldp_linucb`. "vector" has the fewest trials b that spend at most epsilon. It
            spends less, by up to 4% for epsilon up to 10, and by a fifth to six tenths at 50, where b is a handful.
            "amplified" has the least noise that spends epsilon; for windows of tens to thousands of users that is the
            local one, since no amplification theorem covers them: local privacy, refreshed late.

            "reference", the code of Chowdhury and Zhou: with "amplified" s = sqrt(log(2.5 W / delta)) / (epsilon sqrt
            W) and Gamma = s sqrt(T d); with "vector", whose coordinates are cut to [-L, L], b = floor(c g^2 log^2(d /
            delta) / (epsilon^2 W)), c = 10, or 1 for epsilon < 1, and Gamma = log(d / delta) sqrt(T d) / (4 epsilon
            sqrt W). The ridge is 2 Gamma and the width w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))).

            "theory": amplified with s = 4 sqrt(2 log(2.5 W / delta) log(2 / delta)) / (epsilon sqrt W), claimed for
            epsilon up to sqrt(log(2 / delta) / W); vector with c = 24e4 and log(4 (d^2 + 1) / delta); ridge and width
            as in the preset "theory" of `ldp_linucb` at that noise of a user. It plays nearly uniformly for T of 1e4.

    Note:
        Rewards and features that clients cut, matrices that are not definite, and ties: as in `ldp_linucb`.

        The first batch is played without data. A batch that the horizon cuts short is never used, and not relayed.

        `guarantee.spend` is a proven bound at delta; the scales of the published presets do not give epsilon.
        "amplified", for a server that sees the permuted messages: the local guarantee, which permuting cannot harm, or
        amplification (Feldman, McMillan and Talwar 2021) where its conditions hold, which takes thousands of users.
        "vector", for a server that sees a batch's sums: the binomial noise of B users against one of them. The
        simulation relays sums under both. Departures: docs/deviations.md.

    >>> for preset, protocol in (("exact", "vector"), ("reference", "amplified"), ("reference", "vector")):
    ...     private = jb.algorithms.shuffle_linucb(
    ...         num_arms=100, dim=5, horizon=20_000, epsilon=1.0, delta=0.1, preset=preset, protocol=protocol
    ...     )
    ...     print(round(private.guarantee.spend(private.params)[0], 2))
    1.0
    11.27
    0.34
    """
    s = setting(num_arms, dim, horizon, **given)
    users = batch(window, s)
    return ucb_algorithm(shuffle_part(protocol, users, s), s, given["radius_scale"], default=0.2, window=users)
