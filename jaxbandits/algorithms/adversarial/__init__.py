"""Adversarial bandits and experts: losses may be chosen by an opponent."""
