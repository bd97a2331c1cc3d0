"""Historical reports: a broker's commit log becomes Parquet, and Spark counts over it.

    store folder ──source (Structured Streaming)──► ingest ──► lake: Parquet + manifest ──transforms──► result files

    cli/report → launcher   one run is one process of its own: timed, killed as a group, judged by its exit code
    jobs                    what that process does: session, ingest of every broker, the report, the result
    source                  the Spark data source; record_blocks and record_columns are its vectorised inside
    ingest, manifest        exactly-once append: offsets and file list are committed as one file by `os.link`
    transforms              reports as functions, DataFrame to DataFrame
    runs, java, install     what a dashboard may import too: plain files and plain Python, no Spark, no numpy

Nothing here runs inside a broker or a web process. `runs`, `java`, `install` and `errors` import the standard library
only.
"""
