"""Processes with a Spark session, from outside: started, given runs, timed, killed with all they started."""
