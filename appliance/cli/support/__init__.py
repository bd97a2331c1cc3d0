"""`gantry support-bundle`: what support has to know of an appliance, and no secret.

bundle      the command: the parts, each in a file of the archive
parts       what is gathered, and how
secrets     what must not be in it, and how it is taken out
"""
