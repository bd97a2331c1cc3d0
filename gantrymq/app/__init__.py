"""An application made of functions: what it consumes, what it publishes, with the types of its payloads.

application     App: the clients of an application, run together
handlers        what a function with a decorator wants, and calling it
publishers      sending payloads of one type
payloads        bodies to payloads and back: JSON, dataclasses, pydantic, msgspec
shapes          JSON values as dataclasses and plain types
memory          the same application without a broker, for unit tests
"""
