"""LinUCB on locally private reports, a comparator of "Improved rate for locally differentially private linear bandits".

Zheng, Cai, Huang, Li and Wang 2020. Draws: `alg/encode/noise`, d (d + 1) / 2 + d a play: x x' by rows, then x y.
"""

from typing import Annotated, Unpack

from jaxbandits.algorithms.contextual.arguments import ArmRidge, Budget, local_part, setting, ucb_algorithm
from jaxbandits.declared import Dim, Doc, Example, Horizon, Models, NumArms
from jaxbandits.protocol import Algorithm
from jaxbandits.validation import factory


@factory(
    plays_on="decision set",
    example=Example({"epsilon": 1.0, "radius_scale": 0.2}),
    source="""Zheng, Cai, Huang, Li and Wang 2020; docs/formulas/ldp_contextual.md#local-privacy,
        docs/formulas/ldp_contextual.md#reference-presets and, ours, docs/formulas/ldp_contextual.md#exact-presets""",
)
def ldp_linucb(
    *,
    num_arms: NumArms,
    dim: Dim,
    horizon: Horizon,
    models: Models = "shared",
    ridge: ArmRidge | None = None,
    **given: Unpack[Budget],
) -> Annotated[Algorithm, Doc("Its guarantee is local, one message a user.")]:
    """LinUCB under local privacy: every user adds Gaussian noise to x x' and x y before sending them.

    The arm of the largest <x, theta> + w_t sqrt(x' P x) is played, with P = (V + rho_t I)^-1 and theta = P u
    from the noisy sums V and u.

    Args:
        preset: Noise, ridge and width, with R = 1/2. The default: "exact", which alone spends what it is given.

            "exact": noise of scale s = sqrt(4.5) L^2 / m on the diagonal of x x', s / sqrt(2) above it and s / L on x
            y, with 1 / m the noise that one release of sensitivity 1 needs. The ridge is rho_t = L^2 + r sqrt(t) with r
            = s sqrt(2 d), and the width w_t = L B + R sqrt(2 log T + d log(1 + T L^2 / (d rho_T))) + (sqrt(r) B + n
            tail / sqrt(r)) t^(1/4), with n^2 = s^2 B^2 (1 + 1/d) / 2 + (s / L)^2 and tail = sqrt(d) + sqrt(2 log T).

            "reference", the code of Chowdhury and Zhou: users add (Z + Z') / 2 to x x' and z to x y, Z and z normal of
            scale s = sqrt(log(2.5 / delta)) / epsilon. With Gamma = s sqrt(T d) the ridge is rho = 2 Gamma and the
            width w = sqrt(Gamma d) + R sqrt(d log(T (1 + T L^2 / Gamma))).

            "theory": noise of scale s = 4 sqrt(2 log(1.25 / delta)) / epsilon on the upper triangle of x x' and on x y.
            With Upsilon_t = s sqrt(t) (4 sqrt(d) + 2 log(20 T)) the ridge is rho_t = 2 Upsilon_t and the width w_t = 2
            s sqrt(d log T) + (sqrt(3 Upsilon_t) + s sqrt(d t / Upsilon_t)) d log T. It plays nearly uniformly for T of
            1e4.

            "disjoint", the default with `models="per_arm"` and the only one there: the noise of "exact", s = sqrt(4.5)
            L^2 / m, in the block of every arm, whichever is played. With s_1 = s / L^2 and h = sqrt(2 d) + sqrt(2
            log(2 K T)) the ridge is rho_t = ridge + s h sqrt(t) and the width w_t = 1 + sqrt(s_1 / h) t^(1/4). No bound
            on regret is claimed.

    Note:
        The client counts a non-finite reward as 0 and clips the others to [0, 1]; it scales features longer than
        `feature_norm` down to it. The noisy matrix V + rho I need not be definite: a negative x' P x counts as 0. Ties
        go to the lowest arm within 1e-5 of the largest index, relatively.

        `guarantee.spend` is what a user's pair (x, y) truly spends at delta; at L = 1 its squared L2 sensitivity is
        4.5. The scales of the published presets do not give epsilon. Departures: docs/deviations.md.

        With `models="per_arm"` a message has d (d + 1) / 2 + d numbers of every arm, so that it does not tell which arm
        was played: take 6 to 16 features. What rows were standardised and turned by is public, and not covered.

        Local privacy is dear: `examples/gallery/2_privacy/plot_contexts.py` compares it with a shuffler and a trusted
        server.

    >>> for preset in ("exact", "reference", "theory"):
    ...     private = jb.algorithms.ldp_linucb(
    ...         num_arms=100, dim=5, horizon=20_000, epsilon=10.0, delta=0.1, preset=preset
    ...     )
    ...     print(round(private.params.statistics.vector, 4), round(private.guarantee.spend(private.params)[0], 4))
    0.5978 10.0
    0.1794 84.1052
    0.899 5.0246
    """
    s = setting(num_arms, dim, horizon, models=models, ridge=ridge, **given)
    return ucb_algorithm(local_part(s), s, given["radius_scale"], default=0.2)
