"""Requests from the dashboard to elsewhere: only to addresses that were looked at, bounded in time and size."""
