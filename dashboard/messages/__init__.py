"""A topic's messages: finding, looking at one, sending; and what clients told of them in traces."""
