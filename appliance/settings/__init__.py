"""Settings of the appliance and of its processes: declared, read from files, checked, changed while they run."""
