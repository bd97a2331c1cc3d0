"""The commit log: every message once, in mapped files of one size."""
