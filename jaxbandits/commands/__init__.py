"""What the command line does beside sweeps: audits with their table, checks, and lists of what there is."""
