"""What `gantry up` looks at before it starts, and `gantry doctor` at any time. preflight.py adds the rest."""
