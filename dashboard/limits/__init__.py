"""Accounts that may see some topics and groups only: which names, and the check of every request to the cluster."""
