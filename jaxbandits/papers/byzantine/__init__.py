"""Jadbabaie, Li, Qian and Tian, Byzantine-robust federated linear bandits."""
