"""Groups and their members: who is connected, what they subscribe to, how far they have come, who holds a lock."""
