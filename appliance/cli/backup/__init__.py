"""`gantry backup` and `gantry restore`: whole copies of a data folder, made while the appliance runs.

make        the order in which a folder is copied, and what is left out
stores      how far a running broker's log is whole
copying     one file: its hash, its holes, a hard link to the same file in the backup before
manifest    what a backup holds; written last, so that there is none without it
restore     the way back
"""
