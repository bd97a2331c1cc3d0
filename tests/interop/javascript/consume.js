'use strict';

// A push consumer that tells every message and which queues it holds.
// Arguments: name server, topic, group, subscription expression.

const { Consumer } = require('ali-ons');
const { end, options, say } = require('./lines');

const [ nameSrv, topic, consumerGroup, expression ] = process.argv.slice(2);

(async () => {
  const consumer = new Consumer(options(nameSrv, {
    consumerGroup,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
    pullThresholdForQueue: 20000, // past it the client pauses for five seconds
    pullTimeDelayMillsWhenException: 500,
  }));
  consumer.on('error', error => console.error(error.message));
  consumer.subscribe(topic, expression, async message => {
    say('GOT', message.properties.number, message.queueId, message.queueOffset, message.tags, message.keys,
      message.body.toString(), message.msgId);
  });
  await consumer.ready();
  say('STARTED');
  let told = '';
  setInterval(() => {
    const held = [ ...consumer.processQueueTable.values() ].map(item => item.messageQueue)
      .filter(queue => queue.topic === topic).map(queue => queue.queueId)
      .sort().join(',');
    if (held !== told) {
      say('QUEUES', held);
      told = held;
    }
  }, 100).unref();
  await end();
  await consumer.close();
  process.exit(0);
})().catch(error => {
  console.error(error);
  process.exit(1);
});
