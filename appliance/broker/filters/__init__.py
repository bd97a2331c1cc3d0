"""Which messages a subscription wants: tags, SQL conditions, bloom filters."""
