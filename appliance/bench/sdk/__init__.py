"""`gantry bench sdk`: what a message costs the Python client, flow by flow."""
