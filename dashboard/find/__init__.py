"""What the palette (Ctrl-K) finds."""
