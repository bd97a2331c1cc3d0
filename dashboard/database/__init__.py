"""The dashboard's database, whatever its state."""
