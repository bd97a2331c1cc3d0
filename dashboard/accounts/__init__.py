"""Authentication and authorisation: accounts, roles, tokens, passwords, lockout."""
