"""How calls are computed: on this machine's cores and accelerators, or over a cluster.

A *call* is what a device plays: some cells of a group on one stretch of seeds. What it gives back is its *outcome*, and
an interrupted one is a *begun* call. A *chunk* is what the store keeps: a stretch of seeds of one cell, in one file.
"""
