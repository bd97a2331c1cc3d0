"""Topics beyond what one request tells: their bytes and producers, and changes of many at once."""
