"""The SDK: producing, consuming, administering. asyncio first; `blocking` is the same for threads.

producer        Producer                push_consumer   PushConsumer
pull_consumer   PullConsumer            transaction     TransactionProducer
admin           AdminClient             blocking        SyncProducer, SyncPushConsumer, SyncPullConsumer ...

session         what a running client of either kind needs: connections, routes, heartbeats
routes          topic to queues and addresses           name_servers    asking one of several
calls           one broker request per method           sender          a message to some queue, tried again elsewhere
sending         the send request and its answer, as values
request_reply   requests that wait for their replies    trace           what happened to each message, told to a topic
assignment      the queues a consumer holds             rebalance       which queues are whose (pure)
queue_locks     the brokers' locks, when ordered        subscription    topics, tags, where to begin (pure)
pulling         the loop that fills a process queue     process_queue   what is held of one queue
listener_calls  calling the listener                    consuming       workers; ordered_consuming: in order
failed_messages back to the broker, dead letters        offset_store    how far a group has come
polled          what a pull consumer holds ready        consumer_requests   what brokers ask of a consumer
admin_*         the parts of AdminClient, by resource
"""
