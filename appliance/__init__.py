"""The processes of the appliance: supervisor, name server, brokers, report jobs, and the `gantry` command line."""
