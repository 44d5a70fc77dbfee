"""docs/formulas/ldp_contextual.md, one module a section of that page; see `reference` for the rules.

0-based arms, 1-based t unless said otherwise.
"""
