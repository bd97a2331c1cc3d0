"""Messages as RocketMQ defines them: the model, the stored record, batches, properties, ids and names.

Everything here is a value or a pure function: no socket, no file. The store, the broker and the SDK all build on it.
"""
