"""AdminClient: what operators and the dashboard ask of name servers and brokers."""
