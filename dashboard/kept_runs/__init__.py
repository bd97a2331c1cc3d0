"""What every kind of long run shares: the runner. A kind stands in its feature's room."""
