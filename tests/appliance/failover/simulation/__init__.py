"""A deterministic simulation of a group under faults: decide() with real epochs and cuts, all else is played."""
