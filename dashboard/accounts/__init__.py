"""Who may log in and do what: accounts, roles, tokens, passwords, lockout."""
