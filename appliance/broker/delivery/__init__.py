"""From the store to consumers: answers, waiting pulls, delayed messages, groups far behind."""
