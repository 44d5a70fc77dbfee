"""Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (ICML 2025)."""

from jaxbandits.papers.private_adversarial import (
    below_root,
    constants,
    exp3_leak,
    experts_map,
    lemmas,
    lower_bound,
    price_of_privacy,
)

STUDIES = {
    "price-of-privacy": price_of_privacy.STUDY,
    "constants": constants.STUDY,
    "lemmas": lemmas.STUDY,
    "below-root": below_root.STUDY,
    "experts-map": experts_map.STUDY,
    "exp3-leak": exp3_leak.STUDY,
    "lower-bound": lower_bound.STUDY,
}
