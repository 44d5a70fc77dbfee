"""Tunings and regret bounds of the papers, computed on the host.

* `prm_*` and `private_robust_*`: Wu, Zhou, Tao and Wang, On Private and Robust Bandits (NeurIPS 2023).
* `byzantine_*`: Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits.
* `robust_linear_*`: Robust and private stochastic linear bandits (ICML 2023).
* `cw_bound`: linear bandits under a budget of corruption.
* `exact_tuning`, `per_arm_tuning`: private linear bandits that spend what they are given.
* `instrument_*`: `ldp_instrument_ucb`, ours.
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

from jaxbandits.names import load_lazily

_NAMES = {
    "bounds": """
        arms_bounds arms_rates batched_exp4_bound conversion_bound exp3_base_bound exp3_bound exp3_corrected_bound
        experts_bounds experts_rates experts_regions ftpl_bound htinf_bound htinf_experts_bound htinf_window_bound
        local_exp4_bound""",
    "counting": "counting_error counting_lower_bound",
    "exact_presets": "exact_tuning instrument_bound instrument_sensitivity",
    "federated": """
        byzantine_radius byzantine_ridge byzantine_ucb_bound byzantine_ucb_dp_bound byzantine_ucb_dp_mom_bound
        byzantine_window""",
    "linear": "cw_bound robust_linear_action_bound robust_linear_reward_bound",
    "per_arm": "per_arm_tuning",
    "private_frontier": """
        adac_ucb_bound dp_index_bound local_mean_rate local_robust_rate private_bandit_lower_bound private_kl_divergence
        private_kl_lower_bound private_minimax_lower_bound skellam_epsilon skellam_rdp""",
    "private_linear": """
        online_ucb_deviation online_ucb_gradient_bound online_ucb_learner_regret online_ucb_noise online_ucb_sensitivity
        online_ucb_width printed_noise_delta printed_noise_reach""",
    "robust": "private_robust_lower_bound prm_central_bound prm_raw_bound",
    "robust_frontier": """
        barbar_bound budget_of_share contaminated_divergence delayed_order delayed_ucb_bound expected_max
        geometric_bound hybrid_tuning median_shift multilayer_bound wide_elimination_bound""",
    "tunings": """
        batched_exp4_tuning check_epsilon check_mixing composed_epsilon exp3_noisy_tuning exp3_tuning exp4_tuning
        ftpl_noisy_tuning ftpl_tuning local_exp4_tuning refuse window""",
}
__getattr__, __dir__, __all__ = load_lazily(
    __name__, submod_attrs={module: names.split() for module, names in _NAMES.items()}
)
