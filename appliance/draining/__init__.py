"""Taking a broker out of service without an error at its clients; `gantry admin drain` and the dashboard do it by this.

left        what is left at the broker: messages of its groups, connections, what slaves lack
steps       the steps, in the order in which clients see no error
"""
