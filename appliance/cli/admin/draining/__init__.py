"""`gantry admin drain | undrain`: take a broker out of service without an error at its clients.

broker_here the broker's process, if an appliance on this machine runs it
verbs       the verbs, and what they print; the steps are those of appliance/draining
"""
