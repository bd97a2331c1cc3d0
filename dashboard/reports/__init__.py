"""Historical reports: the schedule that starts runs, and their pages."""
