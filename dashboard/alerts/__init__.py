"""Alerts: rules over what the sampler sees, who gets a notice, mutes, and the history."""
