"""The remoting protocol of RocketMQ 4.9: frames, headers, bodies, connections.

A TCP stream is a sequence of frames, nothing else. All integers are big-endian:

    int32   total     bytes that follow this field: 4 + header + body
    int32   word      top 8 bits: header encoding (0 JSON, 1 ROCKETMQ binary); low 24 bits: header length
    bytes   header    code, language, version, opaque, flag, remark, extFields
    bytes   body      whatever the code says; an empty body and no body are the same

`total + 4` may not exceed 16 MiB; a frame whose lengths contradict each other ends the connection, because nothing
after it can be trusted. Answers carry the request's `opaque` and arrive in any order. Flag bit 0 marks an answer, bit
1 a one-way request, which gets no answer, not even an error. Both sides may send requests on one connection, and their
opaque numbers are independent: the flag decides, never the number.

    codes       the numbers
    command     RemotingCommand and its two header encodings
    protocol    bytes in, commands out; no socket
    bodies      the JSON bodies;  fastjson: reading and writing what strict JSON can't
    connection  one asyncio connection;  client: connections by address
    failures    errors that name the peer's role and the request
"""
