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

The names are in `__init__.pyi`, a line each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
