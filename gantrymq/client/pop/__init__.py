"""Leased messages (RocketMQ 5's POP): what brokers are asked, by the SDK and by the proxy, and PopConsumer."""
