// Takes whatever is sent to it, as a receiver of Prometheus' remote-write would, and answers GET with how many requests
// came and how many bytes were in them. It prints its address, and ends with SIGTERM.
import { createServer } from 'node:http';

const came = { requests: 0, bytes: 0 };
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(came));
    return;
  }
  request.on('data', (chunk) => (came.bytes += chunk.length));
  request.on('end', () => {
    came.requests += 1;
    response.writeHead(204).end();
  });
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
