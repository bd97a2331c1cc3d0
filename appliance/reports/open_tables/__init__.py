"""The lake as a table of an open format, for other engines, over the same Parquet files."""
