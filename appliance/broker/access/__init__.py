"""Who may do what, and what one request or connection may cost."""
