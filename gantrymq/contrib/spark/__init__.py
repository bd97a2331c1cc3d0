"""RocketMQ topics as Spark DataFrames, batch and stream, and DataFrames as messages (gantrymq[spark]: PySpark 4.2).

    from gantrymq.contrib.spark import GantrySource

    spark.dataSource.register(GantrySource)
    spark.read.format("gantrymq").option("path", "/data/brokers/broker-a/store").load()
    spark.readStream.format("gantrymq").option("namesrv", "127.0.0.1:9876").option("subscribe", "orders").load()

    source      the data source: what Spark asks for
    interpreter in which Python tasks run
    options     what a user may say, checked
    columns     the schema with units, and its Arrow batches
    positions   what a query begins and ends at: words, offsets, times
    ranges      ranges of queues: cut, limited, lost
    batch, stream    Spark's readers
    store_place, store_queue, store_read    a store folder: its queues, what a task reads
    cluster_place, cluster_read             a cluster, through the pull protocol: the same
    sink                                    DataFrame to topic

Spark's planner calls a place for the ends of the queues and cuts ranges into partitions; a task reads its own with
bounded memory, and rows become Arrow columns without a Python object each.
"""

from gantrymq.contrib.spark.errors import MessagesLost, ReadFailed
from gantrymq.contrib.spark.source import GantrySource

__all__ = ["GantrySource", "MessagesLost", "ReadFailed"]
