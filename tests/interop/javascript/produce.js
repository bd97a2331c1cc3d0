'use strict';

// Sends numbered messages one after the other; a send that fails is tried again until it is acknowledged.
// Arguments: name server, topic, group, count, messages a second (0: no limit).

const { Producer, Message } = require('ali-ons');
const { options, say } = require('./lines');

const TAGS = [ 'TagA', 'TagB', 'TagC' ];
const [ nameSrv, topic, producerGroup, count, rate ] = process.argv.slice(2);

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

function build(number) {
  const message = new Message(topic, TAGS[number % TAGS.length], `body-${number}-\u00e4\u6d88\u606f`);
  message.keys = [ `key-${number}` ];
  message.properties.number = String(number);
  return message;
}

async function send(producer, number) {
  for (;;) {
    try {
      const result = await producer.send(build(number));
      if (result.sendStatus === 'SEND_OK') {
        say('ACK', number, result.messageQueue.queueId, result.queueOffset, '', result.msgId);
        return;
      }
      say('RETRY', number, result.sendStatus);
    } catch (error) {
      say('RETRY', number, error.message.replace(/\s/g, ' '));
    }
    await sleep(100);
  }
}

(async () => {
  const producer = new Producer(options(nameSrv, { producerGroup }));
  producer.on('error', error => console.error(error.message));
  await producer.ready();
  say('STARTED');
  const start = Date.now();
  for (let number = 0; number < Number(count); number++) {
    await send(producer, number);
    const ahead = Number(rate) ? number * 1000 / Number(rate) - (Date.now() - start) : 0;
    if (ahead > 1) await sleep(ahead);
  }
  say('DONE');
  process.exit(0);
})().catch(error => {
  console.error(error);
  process.exit(1);
});
