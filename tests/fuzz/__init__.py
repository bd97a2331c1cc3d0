"""Random input for everything that reads bytes or texts of others: only the declared errors may come out, in time."""
