"""What Prometheus reads at /metrics: what the sampler knows, under rocketmq-exporter's names and our own."""
