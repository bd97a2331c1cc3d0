"""What every client stands on: connections to name servers and brokers, routes, requests to one broker."""
