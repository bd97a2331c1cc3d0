"""Who may what: permissions and roles, sessions, tokens, passwords, lockout."""
