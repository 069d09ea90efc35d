// A remote-write receiver that accepts everything and answers GET with the number of requests and bytes. It prints its
// address and ends with SIGTERM.
import { createServer } from 'node:http';

const received = { requests: 0, bytes: 0 };
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(received));
    return;
  }
  request.on('data', (chunk) => (received.bytes += chunk.length));
  request.on('end', () => {
    received.requests += 1;
    response.writeHead(204).end();
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
