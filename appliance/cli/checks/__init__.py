"""What can be wrong with this machine and the appliance on it. `every` lists all checks and says who shows which:
`gantry up` before a start, `gantry doctor`, the dashboard's page of brokers."""
