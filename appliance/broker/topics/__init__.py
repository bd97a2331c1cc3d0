"""Topics: their settings, how they come to be, their retention, and who learns of them."""
