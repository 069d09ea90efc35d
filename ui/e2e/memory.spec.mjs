// What the page of a run that goes on keeps in memory, on a mock server whose run is an hour old.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onMock } from './mock.mjs';
import { until } from './steps.mjs';

// Few enough seconds that the page joins its oldest ones for the first time while it is looked at.
process.env.MOCK_LIVE_SECONDS = '3705';
const { base, open, find } = onMock(8200);

/** Counts the objects of the page that have properties of these names which are objects, after a collection. */
async function alive(cdp, names) {
  const chunks = [];
  const more = ({ chunk }) => chunks.push(chunk);
  cdp.on('HeapProfiler.addHeapSnapshotChunk', more);
  await cdp.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  cdp.off('HeapProfiler.addHeapSnapshotChunk', more);
  const { snapshot, nodes, edges, strings } = JSON.parse(chunks.join(''));
  const { node_fields: of, edge_fields: ofEdge, edge_types: types } = snapshot.meta;
  let edge = 0;
  let count = 0;
  for (let node = 0; node < nodes.length; node += of.length) {
    const has = new Set();
    for (let left = nodes[node + of.indexOf('edge_count')]; left > 0; left--, edge += ofEdge.length)
      if (types[0][edges[edge]] === 'property') has.add(strings[edges[edge + 1]]);
    if (names.every((n) => has.has(n))) count++;
  }
  return count;
}

test('seconds that were joined are let go', async (t) => {
  const { context, page, wrong } = await open(t, { timeout: 60_000 });
  await page.goto(`${base}/runs/${await find(page, 'checkout peak', 'RUNNING')}`);
  await page.getByText('Latency heat map').waitFor();
  const cdp = await context.newCDPSession(page);
  const seconds = () => alive(cdp, ['byKind', 'byClass', 'histogram']);
  await until(seconds, (n) => n >= 3600, 'not an hour of seconds', 30_000);
  await page.locator('.resolution').filter({ hasText: 'A point stands for up to 2' }).waitFor();
  // 120 of 240 are gone at once, when the two drawings before are: were they kept, there would be 3 840 and more.
  await until(seconds, (n) => n <= 3720, 'what was joined is still there', 30_000);
  assert.deepEqual(wrong, []);
});
