"""`python -m gantrymq run module:consumer`: a consumer as a process.

target      from "module:name" to the consumer
reload      the same in a child process, which is started anew when a source file changes
command     the command line
"""
