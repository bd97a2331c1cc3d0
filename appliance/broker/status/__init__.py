"""What the broker says of itself: statistics, metrics, runtime information."""
