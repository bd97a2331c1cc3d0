"""Pages of dead letters: the groups, one group's letters, runs that put them back, discarding them."""
