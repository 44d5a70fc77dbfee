"""Traced and compiled programs: made, described, and kept on disk."""
