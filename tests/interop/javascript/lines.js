'use strict';

// One fact a line on standard output: a word, then fields between tabs. The Python side reads them.

const quiet = () => {};

exports.say = (...fields) => {
  process.stdout.write(fields.map(field => (field === null || field === undefined ? '' : String(field))).join('\t') + '\n');
};

exports.logger = { info: quiet, debug: quiet, warn: (...args) => console.error(...args), error: (...args) => console.error(...args) };

// The client asks for an HTTP client even when it is told the name server's address; then it never calls it.
exports.httpclient = {
  request() {
    throw new Error('no HTTP is needed here');
  },
};

exports.options = (nameSrv, more) => Object.assign({
  nameSrv,
  clientIP: '127.0.0.1',
  httpclient: exports.httpclient,
  logger: exports.logger,
  pollNameServerInteval: 1000,
  heartbeatBrokerInterval: 1000,
  persistConsumerOffsetInterval: 1000,
  rebalanceInterval: 1000,
}, more);

// Resolves when the Python side closes our standard input.
exports.end = () => new Promise(resolve => {
  process.stdin.resume();
  process.stdin.on('end', resolve);
});
