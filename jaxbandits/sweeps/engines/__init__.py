"""How calls are computed: on this machine's cores and accelerators, or over a cluster."""
