// Reads heap snapshots of a page.

/** snapshot takes a heap snapshot after a garbage collection. */
export async function snapshot(cdp) {
  const chunks = [];
  const more = ({ chunk }) => chunks.push(chunk);
  cdp.on('HeapProfiler.addHeapSnapshotChunk', more);
  await cdp.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  cdp.off('HeapProfiler.addHeapSnapshotChunk', more);
  return JSON.parse(chunks.join(''));
}

/** having counts objects whose named properties are objects or fractional numbers. */
export function having({ snapshot: { meta }, nodes, edges, strings }, names) {
  const { node_fields: of, edge_fields: ofEdge, edge_types: types } = meta;
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

const data = /^(object|array|string|number|closure|regexp|symbol|bigint|concatenated string|sliced string)$/;

/** parts sums bytes by type: page data, compiled code, and browser internals. */
export function parts({ snapshot: { meta }, nodes, strings }) {
  const { node_fields: of, node_types: types } = meta;
  const sum = { data: 0, code: 0, browser: 0 };
  for (let node = 0; node < nodes.length; node += of.length) {
    const type = types[0][nodes[node + of.indexOf('type')]];
    const name = strings[nodes[node + of.indexOf('name')]];
    // Properties stored out of line.
    const what = data.test(type) || name === 'system / PropertyArray' ? 'data' : type === 'code' ? 'code' : 'browser';
    sum[what] += nodes[node + of.indexOf('self_size')];
  }
  return sum;
}
