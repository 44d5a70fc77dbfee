"""Specification ldp_contextual, one module a section; see `reference` for the rules. 0-based arms, 1-based t unless said otherwise."""
