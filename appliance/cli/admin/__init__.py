"""`gantry admin`: a module a noun, `main` has the table of nouns."""
