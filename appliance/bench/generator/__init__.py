"""The load generator: a small C program, so that the load is no bottleneck and its own time is not an interpreter's.

`plan.py` prepares the requests and says where the program patches them; `build.py` compiles it once for each source;
`drive.py` runs it. What it knows of the protocol is a frame's length and an answer's header (`answer.c`): everything
else is in the prepared bytes. `plan.c` reads them, `connection.c` sends and receives, `meter.c` counts.
"""
