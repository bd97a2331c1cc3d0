"""The SDK: producing, consuming, administering. asyncio first; `blocking` is the same for threads.

results                 what calls return
interceptors            the application's code around sends and listener calls

connection/             what every client stands on
    options             the keyword arguments of every client
    lifecycle           Client: start, close, `async with`
    session             a running client: connections, routes, heartbeats
    background          its tasks
    name_servers        asking one of several
    routes              topic to queues, broker to addresses
    broker_calls        one broker request a method
    send_codec          the send request and its answer, as values
    callbacks           functions of the application that are told
    stop_signals        SIGTERM and SIGINT
    compression         what is compressed, how, and where
    received_messages   the messages inside an answer

produce/                sending
    producer            Producer
    transaction         TransactionProducer
    options             the keyword arguments of both
    sender              one message to some queue, tried again at another broker
    fault_latency       brokers to leave alone for a while
    many_sends          many messages at once
    ordered_sends       many messages, each to its queue
    request_reply       requests that wait for their replies
    trace               what happened to each message, sent to a topic
    trace_records       such records as text

consume/                receiving
    push_consumer       PushConsumer
    pull_consumer       PullConsumer
    options             the keyword arguments of both
    subscription        topics, tags, where to begin (pure)
    assignment          the queues a consumer holds
    rebalance           which queues they should be (pure)
    queue_locks         the brokers' locks, for ordered consumers
    start_offset        where to go on in a queue
    offset_store        how far a group has come
    process_queue       what is held of one queue
    pull_loop           keeps a process queue filled
    polled_messages     what a pull consumer holds ready
    workers             the tasks of a push consumer that call the listener
    concurrent_service  gives messages to the listener in any order
    ordered_service     gives messages to the listener in order
    listener_calls      calls of the listener
    failed_messages     messages that the listener could not consume
    request_handlers    what brokers ask of a push consumer
    running_info        what it says of itself
    stacks              where its threads and listener calls are

pop/                    receiving leased messages
    pop_consumer        PopConsumer
    options             its keyword arguments
    polling             getting messages from several brokers
    leases              what was polled, renewed until acknowledged
    serving             gives messages to a listener
    pop_calls           what brokers are asked, by the proxy too

admin/                  AdminClient, a module a resource
blocking/               SyncProducer, SyncPushConsumer, SyncPullConsumer, SyncPopConsumer, SyncTransactionProducer,
                        SyncAdminClient
"""
