// Saved queries, viewers, runs on a phone, and a frozen server, on the mock server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onMock } from './mock.mjs';
import { keepsQueries, looksAtTables, sortsOnAPhone } from './queries.mjs';
import { detectsAFrozenServer } from './frozenServer.mjs';

const { base, open, server } = onMock(8195);

test('saved queries, viewers, a phone, a server that stands still', async (t) => {
  const { context, page, step, wrong } = await open(t);
  await keepsQueries(page, await context.newPage(), base, step);
  await looksAtTables(page, base, step);
  await step('every page says that the server stands still', () => detectsAFrozenServer(context, server(), base));
  await sortsOnAPhone(page, base, step);
  assert.deepEqual(wrong, []);
});
