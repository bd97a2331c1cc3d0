"""`python -m tests.bench.store`: the store alone, stage by stage, and how soon a broker serves again."""
