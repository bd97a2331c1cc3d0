"""Verbs of `gantry admin` that ask a dashboard, by its REST: alerts, people, tokens, reports, runs; offsets, in part.

A line of `table.py` gives an operation of REST a name; its options come from the OpenAPI document (`operations.py`).
The dashboard reads it the other way round: a page's call becomes the line that stands beside the form.
"""
