"""A broker: its figures, its settings, who is its master."""
