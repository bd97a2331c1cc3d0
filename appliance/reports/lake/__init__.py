"""The lake: Delta tables, one of messages and one for each kind of sample, in a folder, S3 or HDFS.

    PLACE/delta/messages/_delta_log/              which files count, and how far each broker's log was read
    PLACE/delta/messages/date=YYYY-MM-DD/*.parquet    rows stored on that day of UTC
    PLACE/delta/slaves, groups, brokers           samples of each minute
    DATA/reports/lake.lock                        flock: one writer of a data folder at a time

PLACE is DATA/reports, or what `report_lake` says. A file is written once, under a name that no other one has; it counts
from the commit on that adds it, and that commit says how far its broker's log is read (reading.py). So position and
files are one atomic object: what a killed run has not committed was never there, and the next run reads it again.
"""
