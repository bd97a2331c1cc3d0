"""AdminClient for threads: a module a part, each written from its original."""
