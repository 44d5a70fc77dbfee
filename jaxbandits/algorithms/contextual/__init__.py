"""Linear bandits whose arms are new at every play: one user a play, plain and private."""
