"""`gantry bench store`: the store alone, stage by stage, and beside Apache's."""
