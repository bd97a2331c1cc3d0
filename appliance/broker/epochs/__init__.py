"""Epochs: whose log this is. Their record, what a start makes of it, and the turns from one role to the other."""
