"""`apache.rocketmq.v2`, what RocketMQ 5 clients speak: two .proto files of Apache's, and the code made of them.

The .proto files are rocketmq-apis' own (Apache-2.0: their headers, and NOTICE beside them; LICENSE is this project's).
After a change of them: `python -m tests.appliance.proxy.protocol_code`. A test compares.
"""
