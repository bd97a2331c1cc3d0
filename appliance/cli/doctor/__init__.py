"""`gantry doctor` and `gantry ready`: is all well here, and does one process serve?"""
