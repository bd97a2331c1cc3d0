"""The SDK: producing, consuming, administering. asyncio first; `blocking` is the same for threads.

connection/     what every client stands on
    session             a running client: connections, routes, heartbeats     background   its tasks
    name_servers        asking one of several      routes       topic to queues, broker to addresses
    broker_calls        one broker request a method
    send_codec          the send request and its answer, as values
    received_messages   the messages inside an answer
produce/        sending
    producer            Producer                   transaction     TransactionProducer
    sender              one message to some queue, tried again at another broker
    request_reply       requests that wait for their replies
    trace               what happened to each message, sent to a topic        trace_records   as text
consume/        receiving
    push_consumer       PushConsumer               pull_consumer   PullConsumer
    subscription        topics, tags, where to begin (pure)        subscription_check   SQL, asked of a broker
    assignment          the queues a consumer holds                rebalance            its share of them (pure)
    queue_locks         the brokers' locks, when ordered           start_offset         where to go on in a queue
    process_queue       messages held of one queue                 pull_loop            keeps it filled
    concurrent_service  gives messages to the listener             ordered_service      in order
    listener_calls      one call of the listener                   failed_messages      to be delivered again
    polled_messages     what a pull consumer holds ready           offset_store         how far a group has come
    request_handlers    what brokers ask of a consumer             running_info, stacks its answers
admin/          AdminClient, a module a resource
blocking/       SyncProducer, SyncPushConsumer, SyncPullConsumer, SyncTransactionProducer
results         what calls return
"""
