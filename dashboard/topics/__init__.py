"""Topics: list, one topic, its figures; changes of many at once."""
