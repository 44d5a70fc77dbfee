"""Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (ICML 2025)."""

# figure -> its module
STUDIES = {
    "price-of-privacy": "price_of_privacy", "constants": "constants", "lemmas": "lemmas", "below-root": "below_root",
    "experts-map": "experts_map", "exp3-leak": "exp3_leak", "lower-bound": "lower_bound",
}  # fmt: skip
