"""Slow literal NumPy transcriptions of the algorithms, written from `docs/formulas`, never from the fast code.

Every function takes its randomness as data (uniforms, standard Laplace draws, reward callbacks), so that a fast
implementation can be replayed on exactly the same draws. Plain loops over plays, float64, 0-based arms, 1-based t.
"""
