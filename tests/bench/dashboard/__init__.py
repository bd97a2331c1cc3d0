"""The dashboard with thousands of topics and groups and hundreds of tabs: `python -m tests.bench.dashboard`."""
