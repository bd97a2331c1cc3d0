"""`gantry bench reports`: what reports cost, from a full log to the answer of a warm session, and with DuckDB."""
