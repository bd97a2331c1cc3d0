"""`gantry install-reports`: what the lock names, from the network or from a file, with its progress in a state file."""
