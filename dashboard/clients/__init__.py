"""Connected clients: who is there, over which connections, how much it asks, and an end of it."""
