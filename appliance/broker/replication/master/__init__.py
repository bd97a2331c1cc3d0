"""The master's side: who comes in at the port for slaves, what each is given, and what waits for their copies."""
