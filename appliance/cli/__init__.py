"""The commands of `gantry`, a module each: `add_arguments(parser)` and `run(arguments) -> exit code`."""
