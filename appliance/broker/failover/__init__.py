"""Automatic failover at a slave: it looks at etcd, decides as appliance.failover does, and acts."""
