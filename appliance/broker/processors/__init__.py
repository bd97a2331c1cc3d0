"""What a broker does with each request: a module a resource. table.py says who serves which code."""
