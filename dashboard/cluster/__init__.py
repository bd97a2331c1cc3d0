"""The one door to the cluster: `gateway`, what it asks, and the values it hands out."""
