"""`gantry admin drain | undrain`: take a broker out of service without an error at its clients.

left        what its groups have not consumed yet
broker_here the broker's process, if an appliance on this machine runs it
verbs       the steps, and what they print
"""
