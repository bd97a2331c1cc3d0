"""Settings of the appliance and of its processes: declared, read from files, checked, and changed at run time."""
