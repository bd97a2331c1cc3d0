"""What leaves as a file: rows for programs and spreadsheets."""
