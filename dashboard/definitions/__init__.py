"""Definitions of a cluster as one document: topics, groups, broker accounts, alerts; export, difference, import."""
