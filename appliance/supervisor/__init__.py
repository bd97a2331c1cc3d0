"""Starts the other roles as commands, keeps them running, stops them in reverse order. It imports none of them."""
