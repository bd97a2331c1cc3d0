"""Pages about accounts: log-in, first run, invitations, people, passwords, tokens."""
