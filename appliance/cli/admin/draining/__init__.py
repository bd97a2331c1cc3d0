"""`gantry admin drain | undrain`: take a broker out of service without an error at its clients.

verbs: the verbs, and what they print; the steps are those of appliance/draining
"""
