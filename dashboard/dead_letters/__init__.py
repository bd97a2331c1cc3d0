"""Dead letters: which groups have some, why they failed, and putting them back. Pages and REST ask here."""
