"""`gantry backup` and `gantry restore`: whole copies of a data folder, made while the appliance runs.

make        the order in which a folder is copied, and what is left out
stores      how far a running broker's log is whole
copying     one file's bytes: read as they are now, hashed, written with holes
manifest    what a backup holds; written last, so that there is none without it
places      where backups are: a folder, with hard links to the files of the backup before
s3_place    the same in S3, where a file that did not change stays with the backup that sent it
restore     the way back
"""
