"""The first minute of an application: what is up, what it is told to connect to, and why it can not."""
