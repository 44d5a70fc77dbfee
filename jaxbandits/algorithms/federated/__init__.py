"""Linear bandits of many agents, some of which lie."""
