"""The SDK: producing, consuming, administering. asyncio first; `blocking` is the same for threads.

producer        Producer                push_consumer   PushConsumer
admin           AdminClient             blocking        SyncProducer, SyncPushConsumer
session         what a running client of either kind needs: connections, routes, heartbeats
routes          topic to queues and addresses           name_servers    asking one of several
calls           one broker request per method           sending         the send request and its answer, as values
pulling         the loop that fills a process queue     consuming       the workers that empty it
process_queue   what is held of one queue               offset_store    how far a group has come
rebalance       which queues are whose (pure)           subscription    tags (pure)
"""
