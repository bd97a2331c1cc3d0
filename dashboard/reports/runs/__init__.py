"""Report runs: plans, the queue, the Spark session, results."""
