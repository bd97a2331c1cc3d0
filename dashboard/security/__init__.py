"""What is open to whom: weak settings, accounts, tokens and channels, each with what to do about it."""
