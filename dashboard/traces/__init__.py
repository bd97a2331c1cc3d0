"""What clients with tracing on told about their messages: found by topic, group, key, id, time, slow or failed."""
