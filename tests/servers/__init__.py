"""What is around the appliance, as tests make it: servers of other projects, names of hosts."""
