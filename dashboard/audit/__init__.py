"""The audit log: who changed what, by which way, and what came of it; each entry is chained to the one before."""
