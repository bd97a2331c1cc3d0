"""`apache.rocketmq.v2`, what RocketMQ 5 clients speak: two .proto files of Apache's, and the code made of them.

The .proto files are rocketmq-apis' own (Apache-2.0: their headers, and NOTICE beside them; LICENSE is this project's).
After a change of them, with a protoc of the oldest protobuf major that pyproject.toml allows:

    protoc --python_out=OUT --pyi_out=OUT apache/rocketmq/v2/definition.proto apache/rocketmq/v2/service.proto

and in the four files `from apache.rocketmq.v2 import` becomes `from appliance.proxy.protocol import`. A test compares
each message, field and number of the code with the text.
"""
