"""What the dashboard samples of slaves, groups and brokers, a row a minute, on its way to the lake. No Spark."""
