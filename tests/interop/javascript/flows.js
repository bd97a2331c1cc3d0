'use strict';

// What the client can do, in one process: sends of every kind it has, consumed by push with tags, given back once, and
// broadcast. Each consumed message is a line "TOLD" with JSON. Arguments: name server, topic, group, how many messages,
// access key, secret key ("-": unsigned).

const { Consumer, Producer, Message } = require('ali-ons');
const { end, options, say } = require('./lines');

const [ nameSrv, topic, group, count, accessKey, secretKey ] = process.argv.slice(2);
const account = accessKey === '-' ? {} : { accessKey, secretKey };
const failed = new Set();

function consume(name, isBroadcast, expression) {
  const consumer = new Consumer(options(nameSrv, Object.assign({
    consumerGroup: `${group}-${name}`,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
    instanceName: name,
    isBroadcast,
    pullTimeDelayMillsWhenException: 500,
  }, account)));
  consumer.on('error', error => console.error(error.message));
  consumer.subscribe(topic, expression, async message => {
    const number = Number(message.properties.number);
    say('TOLD', JSON.stringify({
      consumer: name, number, tag: message.tags, keys: message.keys, body: message.body.toString(), times: message.reconsumeTimes,
      queue: message.queueId, host: message.storeHost, born: message.bornTimestamp, stored: message.storeTimestamp,
    }));
    if (name === 'tags' && number === 0 && !failed.has(number)) {
      failed.add(number);
      return Consumer.ACTION_RETRY;
    }
  });
  return consumer;
}

function build(number) {
  const unicode = '\u00e4\u6d88\u606f\ud83d\ude80';
  const message = new Message(topic, [ 'TagA', 'TagB' ][number % 2], `body-${number}-${unicode}`);
  message.keys = [ `key-${number}`, unicode ];
  message.properties.number = String(number);
  if (number === 2) message.body = Buffer.from('five kilobytes '.repeat(350)); // sent compressed
  if (number === 4) message.delayTimeLevel = 2;
  if (number === 6) message.shardingKey = 'order-6';
  return message;
}

(async () => {
  const consumers = [ consume('tags', false, 'TagA'), consume('one', true, '*'), consume('two', true, '*') ];
  for (const consumer of consumers) await consumer.ready();
  const producer = new Producer(options(nameSrv, Object.assign({ producerGroup: `${group}-producer` }, account)));
  producer.on('error', error => console.error(error.message));
  await producer.ready();
  say('STARTED');
  for (let number = 0; number < Number(count); number++) {
    const result = await producer.send(build(number));
    say('SENT', JSON.stringify({
      number, status: result.sendStatus, broker: result.messageQueue.brokerName, queue: result.messageQueue.queueId, id: result.msgId,
    }));
  }
  say('DONE');
  await end();
  for (const client of [ ...consumers, producer ]) await client.close();
  process.exit(0);
})().catch(error => {
  console.error(error);
  process.exit(1);
});
