"""What a message costs the Python client: each flow of the SDK, and beside it the clients of other systems."""
