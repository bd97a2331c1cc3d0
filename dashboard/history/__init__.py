"""History: what the sampler saw, each second for a day, each minute and each hour for 30 days, gaps kept as gaps."""
