"""Checks of a user's own parts before anything runs."""
