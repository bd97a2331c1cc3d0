"""Of reports as pure functions, what needs no Spark session. The rest is in with_spark/."""
