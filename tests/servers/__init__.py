"""Servers of other projects that the dashboard may use, as tests start them."""
