"""Names of results: equal keys mean equal bits."""
