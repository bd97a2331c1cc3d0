"""Historical reports: a broker's commit log is copied to Parquet files, and Spark computes reports from them.

    store folder ──spark_source (Structured Streaming)─► ingest ─► lake: Parquet + manifest ──transforms─► result files

    cli/report → launcher   runs each report as a process of its own, with a time limit
    jobs                    the main program of that process: session, ingest of every broker, report, result
    spark_source            the Spark data source; record_blocks and record_columns are its vectorised decoder
    ingest, manifest        exactly-once append: offsets and file list are committed as one file by `os.link`
    transforms              reports as functions, DataFrame to DataFrame
    runs, java, install_state    plain files and plain Python for the dashboard, without Spark or numpy

Nothing here runs inside a broker or a web process. `runs`, `java`, `install_state` and `errors` import the standard
library only.
"""
