"""Alerts: rules over what the sampler sees, who gets a notice, silences, past incidents."""
