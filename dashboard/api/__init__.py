"""REST: all operations as one, their document, and the page that shows it. Loaded by the first request for it."""
