"""Studies across the papers, see docs/reproductions/across.md."""
