"""gantrymq.contrib.django in a real project, which stands in `project/` and runs in a copy of it."""
