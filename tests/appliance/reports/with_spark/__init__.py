"""Of reports, what needs a Spark session: one for all of these modules."""
