"""The name servers' key-value table: its entries, the form of one, and the pages."""
