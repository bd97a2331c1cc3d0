"""What forms of pages and REST share: the base, fields, and their lines for a shell."""
