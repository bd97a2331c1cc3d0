"""Alarms: rules over what the sampler sees, who is told, silences, and a log of every delivery."""
