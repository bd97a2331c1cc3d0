"""Historical reports: a broker's commit log is copied to Parquet files, and Spark computes reports from them.

    store folder ──log_ranges─► Spark's tasks: lake/range_reader ──lake/writer─► lake ──transforms─► result files

    cli/report → sessions/  gives reports to a process with a Spark session, with a time limit
    jobs                    the main program of that process: session, ingest of every broker, report, result
    ingest                  cuts the log into ranges, lets Spark's workers copy them, goes on behind what is lost
    lake/                   Delta tables: what tasks write, and the commits that say what counts and how far was read
    worker_jobs             a task that fails is repeated; what Spark says, in a sentence
    transforms              reports as functions, DataFrame to DataFrame
    runs, java, install_state    plain files and plain Python for the dashboard, without Spark or numpy

Nothing here runs inside a broker or a web process. `runs`, `java`, `install_state` and `errors` import the standard
library only.
"""
