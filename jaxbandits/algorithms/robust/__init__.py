"""Heavy tails and contaminated rewards, plain and private."""
