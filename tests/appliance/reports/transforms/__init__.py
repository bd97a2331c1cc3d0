"""Of reports as pure functions, what needs no Spark session. The rest is in test_pipeline.py, which has one."""
