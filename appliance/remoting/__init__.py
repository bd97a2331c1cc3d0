"""The server side of the remoting protocol: connections, request lanes, handlers. Shared by name server and broker."""
