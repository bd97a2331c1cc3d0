"""Accounts: people, invitations, the first one, passwords, API tokens."""
