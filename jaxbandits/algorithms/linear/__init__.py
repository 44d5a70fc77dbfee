"""Linear bandits with a fixed set of arms: elimination in batches of a G-optimal design."""
