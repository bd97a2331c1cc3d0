"""What the process of report runs does: bring each broker's lake up to date, from the folder that is the master's now,
and compute the report over all lakes.
"""
