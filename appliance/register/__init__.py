"""The register: etcd gives out epoch numbers, and keeps in-sync sets readable when their master is gone.

etcd decides by compare-and-swap, and nothing here depends on a clock: a transaction either finds the revision that it
was given, or changes nothing. Brokers with `etcdEndpoints` use it, and `gantry admin ha`.
"""
