"""The dashboard's database: opening, repair and copies."""
