"""Asi, Raman and Talwar, Faster Rates for Private Adversarial Bandits (ICML 2025)."""
