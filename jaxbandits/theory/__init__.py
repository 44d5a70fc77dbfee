"""Tunings and regret bounds of the papers, computed on the host.

* `prm_*` and `private_robust_*`: Wu, Zhou, Tao and Wang, On Private and Robust Bandits (NeurIPS 2023).
* `byzantine_*`: Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.
* `robust_linear_*`: Robust and private stochastic linear bandits (ICML 2023).
* `cw_bound`: linear bandits under a budget of corruption.
* `exact_tuning`: private linear bandits that spend what they are given.
* `online_ucb_*`, `printed_noise_*`: Improved rate for locally differentially private linear bandits.
* `private_kl_*`, `private_bandit_*`, `private_minimax_*`, `dp_index_bound`, `adac_ucb_bound`: private bandits of today.
* `local_mean_rate`, `local_robust_rate`: locally private reports of which some are corrupted.
* `multilayer_bound`, `barbar_bound`: races of arms under a budget of corruption.
* `skellam_*`: Skellam noise under secure aggregation.
* `counting_*`: private running sums.
* `expected_max`: the largest of several noisy means.
* `budget_of_share`: budgets of corruption.
* `wide_elimination_bound`: elimination under a budget of corruption.
* `median_shift`, `contaminated_divergence`: contaminated normal arms.
* `delayed_*`, `geometric_bound`, `hybrid_tuning`: feedback that comes late.
* All others: Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (ICML 2025).

K arms, N experts, T plays, n = epsilon T; `log` is natural. A bound may exceed T: plot min(bound, T). Where the
printed constants could not be read, or a step of a proof is missing, the docstring says which form is given.
"""

from jaxbandits.mechanisms.composition import composed_epsilon
from jaxbandits.theory.bounds import (
    arms_bounds,
    arms_rates,
    batched_exp4_bound,
    conversion_bound,
    exp3_base_bound,
    exp3_bound,
    exp3_corrected_bound,
    experts_bounds,
    experts_rates,
    experts_regions,
    ftpl_bound,
    htinf_bound,
    htinf_experts_bound,
    htinf_window_bound,
    local_exp4_bound,
)
from jaxbandits.theory.budgets import budget_of_share
from jaxbandits.theory.contamination import contaminated_divergence, median_shift
from jaxbandits.theory.counting import counting_error, counting_lower_bound
from jaxbandits.theory.delay import delayed_order, delayed_ucb_bound, geometric_bound, hybrid_tuning
from jaxbandits.theory.exact_presets import exact_tuning
from jaxbandits.theory.extremes import expected_max
from jaxbandits.theory.federated import (
    byzantine_radius,
    byzantine_ridge,
    byzantine_ucb_bound,
    byzantine_ucb_dp_bound,
    byzantine_ucb_dp_mom_bound,
    byzantine_window,
)
from jaxbandits.theory.linear import robust_linear_action_bound, robust_linear_reward_bound
from jaxbandits.theory.linear_robust import cw_bound
from jaxbandits.theory.local_privacy import local_mean_rate, local_robust_rate
from jaxbandits.theory.private_arms import (
    dp_index_bound,
    private_bandit_lower_bound,
    private_kl_divergence,
    private_kl_lower_bound,
    private_minimax_lower_bound,
)
from jaxbandits.theory.private_linear import (
    online_ucb_deviation,
    online_ucb_gradient_bound,
    online_ucb_learner_regret,
    online_ucb_noise,
    online_ucb_sensitivity,
    online_ucb_width,
    printed_noise_delta,
    printed_noise_reach,
)
from jaxbandits.theory.robust import private_robust_lower_bound, prm_central_bound, prm_raw_bound
from jaxbandits.theory.robust_races import barbar_bound, multilayer_bound
from jaxbandits.theory.skellam import skellam_epsilon, skellam_rdp
from jaxbandits.theory.tunings import (
    batched_exp4_tuning,
    check_epsilon,
    check_mixing,
    exp3_noisy_tuning,
    exp3_tuning,
    exp4_tuning,
    ftpl_noisy_tuning,
    ftpl_tuning,
    local_exp4_tuning,
    refuse,
    window,
)
from jaxbandits.theory.widened import wide_elimination_bound
from jaxbandits.theory.zero_concentrated import adac_ucb_bound

__all__ = [
    "window",
    "check_epsilon",
    "check_mixing",
    "refuse",
    "exp3_tuning",
    "exp3_noisy_tuning",
    "ftpl_tuning",
    "ftpl_noisy_tuning",
    "local_exp4_tuning",
    "batched_exp4_tuning",
    "exp4_tuning",
    "composed_epsilon",
    "conversion_bound",
    "htinf_bound",
    "htinf_window_bound",
    "exp3_bound",
    "exp3_corrected_bound",
    "exp3_base_bound",
    "ftpl_bound",
    "htinf_experts_bound",
    "local_exp4_bound",
    "batched_exp4_bound",
    "arms_rates",
    "experts_rates",
    "arms_bounds",
    "experts_bounds",
    "experts_regions",
    "prm_raw_bound",
    "prm_central_bound",
    "private_robust_lower_bound",
    "byzantine_ridge",
    "byzantine_radius",
    "byzantine_window",
    "byzantine_ucb_bound",
    "byzantine_ucb_dp_bound",
    "byzantine_ucb_dp_mom_bound",
    "robust_linear_reward_bound",
    "robust_linear_action_bound",
    "cw_bound",
    "online_ucb_sensitivity",
    "online_ucb_noise",
    "online_ucb_gradient_bound",
    "online_ucb_learner_regret",
    "online_ucb_deviation",
    "online_ucb_width",
    "exact_tuning",
    "printed_noise_delta",
    "printed_noise_reach",
    "counting_error",
    "counting_lower_bound",
    "expected_max",
    "adac_ucb_bound",
    "local_mean_rate",
    "local_robust_rate",
    "skellam_epsilon",
    "skellam_rdp",
    "dp_index_bound",
    "private_bandit_lower_bound",
    "private_kl_divergence",
    "private_kl_lower_bound",
    "private_minimax_lower_bound",
    "budget_of_share",
    "wide_elimination_bound",
    "median_shift",
    "contaminated_divergence",
    "multilayer_bound",
    "barbar_bound",
    "delayed_order",
    "delayed_ucb_bound",
    "geometric_bound",
    "hybrid_tuning",
]
