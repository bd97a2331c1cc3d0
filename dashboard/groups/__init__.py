"""Consumer groups: list, one group, its lag over time, moving it, why it is behind."""
