"""`gantry admin ha`: the record of epochs and in-sync sets in etcd, beside what the brokers say."""
