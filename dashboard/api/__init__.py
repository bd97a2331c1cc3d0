"""REST: all operations as one, their document, and the page that shows it. See later.py for when it is loaded."""
