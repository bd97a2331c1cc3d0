"""Incidents: what the Overview warned of, from when until when, kept after it is gone."""
