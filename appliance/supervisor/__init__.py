"""Starts the other roles as commands, keeps them running, stops them in reverse order. Knows no role from inside."""
