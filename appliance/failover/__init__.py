"""Automatic failover, decided: what a member of a broker name does with what etcd says. Values only: no I/O, no clock.

etcd is a register of two keys that matter, the term and the beat. The member that has the term of an epoch is its
master, for as long as its last beat proves it; when the beat has stood still for a lease, a member of the in-sync set
takes the next epoch by compare-and-swap. No acknowledged message depends on a clock: each member of the set has it, and
refuses the master of before from then on. The lease limits how long two masters can overlap for all else.
"""
