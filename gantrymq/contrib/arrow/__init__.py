"""Stored messages as Arrow columns, without a Python object for each; needs numpy and pyarrow, which the extra `spark`
brings. The Spark data source reads through it, and so do the appliance's reports.

record_blocks   bytes of a commit log, or of a pull's answer, to checked header fields
record_search   where records go on behind damage
log_files       the files of a commit log, while a broker may add and delete some
columns         header fields to Arrow arrays: texts, addresses, properties, ids
"""
