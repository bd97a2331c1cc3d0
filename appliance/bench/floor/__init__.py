"""The floor: a server of C that stores nothing, and costs what the kernel takes for the same bytes."""
