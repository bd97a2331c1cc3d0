// Sends every kind of message with the client of RocketMQ 5 for Node.js, consumes all, and prints what it saw.
import { ConsumeResult, Producer, PushConsumer, SimpleConsumer } from 'rocketmq-client-nodejs';
const endpoints = process.argv[2];
const send = async (producer, options) => {
  await producer.send({ tag: 'tag', keys: ['k1', 'k2'], ...options, body: Buffer.from(options.body) });
  console.log(`SENT\t${options.topic}\t${options.body}`);
};
const checker = { check: async m => { console.log(`CHECK\t${m.body}`); return 1; } };
const producer = new Producer({ endpoints, topics: ['normal', 'fifo', 'delay', 'tx'], checker, maxAttempts: 3 });
await producer.startup();
for (let n = 0; n < 20; n++) await send(producer, { topic: 'normal', body: `n${n}` });
for (let n = 0; n < 12; n++) await send(producer, { topic: 'fifo', body: `f${n}`, messageGroup: `g${n % 3}` });
const waiting = await producer.send({ topic: 'delay', body: Buffer.from('recalled'), delay: 8000 });
const recalled = await producer.recallMessage('delay', waiting.recallHandle);
console.log(`RECALLED\t${recalled.messageId === waiting.messageId}`);
await send(producer, { topic: 'delay', body: 'd0', delay: 9000 });
for (const end of ['commit', 'rollback', 'open']) {
  const tx = producer.beginTransaction();
  await producer.send({ topic: 'tx', tag: 'tag', body: Buffer.from(end) }, tx);
  if (end === 'commit') await tx.commit();
  if (end === 'rollback') await tx.rollback();
}
for (const [topic, count] of Object.entries({ normal: 20, fifo: 12, delay: 1, tx: 2 })) {
  const consumer = new SimpleConsumer({ endpoints, consumerGroup: `node-${topic}`, subscriptions: new Map().set(topic, '*'), awaitDuration: 5000 });
  await consumer.startup();
  const end = Date.now() + 40000;
  for (let got = 0; got < count && Date.now() < end;) {
    for (const m of await consumer.receive(16, 20000)) {
      console.log(`GOT\t${topic}\t${m.body}\t${m.messageGroup ?? ''}\t${m.deliveryAttempt}`);
      await consumer.ack(m); got++;
    }
  }
  await consumer.shutdown();
}
let pushed = 0;
const messageListener = { consume: async m => { // the messages of the topic fifo once more, for another group
  console.log(`PUSH\t${m.body}\t${m.messageGroup ?? ''}\t${m.deliveryAttempt}`);
  pushed++;
  return ConsumeResult.SUCCESS;
} };
const push = new PushConsumer({ endpoints, consumerGroup: 'node-push', subscriptions: new Map().set('fifo', '*'), messageListener, longPollingTimeout: 5000 });
await push.startup();
for (const end = Date.now() + 60000; pushed < 12 && Date.now() < end;) await new Promise(done => setTimeout(done, 100));
await push.shutdown();
await producer.shutdown();
console.log('DONE');
process.exit(0);
