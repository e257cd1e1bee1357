// The echo service on the Node SDK, instrumented by `auto-instrumentations-node/register`. What it must send: ../README.md.
'use strict';

const http = require('node:http');
const { SpanKind, SpanStatusCode, TraceFlags, createTraceState, trace } = require('@opentelemetry/api');

const BYTES = Uint8Array.of(0x00, 0x7f, 0x80, 0xff);

const ATTRIBUTES = {
  'text': 'plain',
  'text.empty': '',
  'text.unicode': 'Grüße, 世界 🦀',
  'text.escapes': 'tab\t line\n quote" slash\\ bell\x07 del\x7f',
  'flag.true': true,
  'flag.false': false,
  'int.zero': 0,
  'int.safe.max': Number.MAX_SAFE_INTEGER,
  'int.safe.min': Number.MIN_SAFE_INTEGER,
  'double.fraction': 0.1,
  'double.whole': 3.0,
  'double.negative': -2.5,
  'double.largest': Number.MAX_VALUE,
  'double.smallest': Number.MIN_VALUE,
  'double.infinite': Infinity,
  'double.nan': NaN,
  'texts': ['a', '', 'ß'],
  'texts.none': [],
  'flags': [true, false],
  'ints': [-1, 0, Number.MAX_SAFE_INTEGER],
  'doubles': [0.5, -2.25, 1e-9],
  'bytes': BYTES,
  'bytes.empty': new Uint8Array(),
  'mixed': ['a', 1, true, 0.5, BYTES, null, ['inner']],
  'map': { text: 'ß', int: 1, flag: true, double: 0.5, inner: { list: [1, 'two'] }, nothing: null },
  'map.empty': {},
};

const tracer = trace.getTracer('echo', '1.2.3');

function kinds() {
  const linked = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    isRemote: true,
    traceFlags: TraceFlags.SAMPLED,
    traceState: createTraceState('vendor=value'),
  };
  const links = [{ context: linked, attributes: { 'link.text': 'ß', 'link.int': 7 } }];
  const span = tracer.startSpan('kinds', { kind: SpanKind.PRODUCER, attributes: ATTRIBUTES, links });
  span.addEvent('noted', { 'event.text': 'ß', 'event.int': 7, 'event.double': 0.25, 'event.flags': [true, false] });
  span.setStatus({ code: SpanStatusCode.ERROR, message: 'it went wrong: Größe 🚫' });
  span.end();
}

// Nobody listens on the port of `discard`.
function failedCall() {
  return new Promise((resolve) => {
    http.get('http://127.0.0.1:9/nobody').on('error', resolve).on('response', resolve);
  });
}

const server = http.createServer(async (request, response) => {
  if (request.url === '/plain') {
    response.end('plain');
    return;
  }
  if (request.url !== '/echo') {
    response.writeHead(404).end();
    return;
  }
  kinds();
  await failedCall();
  response.end('echo');
});
server.listen(Number(process.env.PORT), '127.0.0.1');
// The instrumentation takes SIGTERM to send what is left, and so keeps it from ending the process.
process.once('SIGTERM', () => server.close());
