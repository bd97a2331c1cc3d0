"""Verbs of `gantry admin` that ask a dashboard, by its REST: alarms, people, tokens, reports, runs.

One table says a verb's words and its call (`calls.py`), so the dashboard reads it the other way round: a page's call
becomes the line that stands beside the form.
"""
