"""The live part: the sampler's second, sockets, and what each of them shows."""
