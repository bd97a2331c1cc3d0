"""A broker's pages: how it is, its settings, who is its master."""
