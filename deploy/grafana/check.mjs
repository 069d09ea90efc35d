// Asks a server every query of the dashboard over the time of one of its runs, and the values of its variables: all have
// to be understood, and to have series. usage: node check.mjs URL TOKEN RUN_ID
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const [url, token, run] = process.argv.slice(2);
const text = readFileSync(new URL('runs.json', import.meta.url), 'utf8');
const dashboard = JSON.parse(text);
const headers = { Authorization: `Bearer ${token}` };

async function get(path, query) {
  const res = await fetch(`${url}${path}${query ? `?${new URLSearchParams(query)}` : ''}`, { headers });
  const body = await res.text();
  assert.equal(res.status, 200, `${path} ${JSON.stringify(query)}: ${body}`);
  return JSON.parse(body);
}

const { start_time, end_time } = await get(`/api/runs/${run}`);
const start = Date.parse(start_time) / 1000;
const end = Date.parse(end_time ?? new Date().toISOString()) / 1000;
const values = { $__rate_interval: '4s', $run: run, $template: '.*', $table_type: '.*' };
const filled = (q) => q.replace(/\$\w+/g, (name) => values[name] ?? assert.fail(`${name} in ${q}`));

// A run without errors has none by class, one without a warehouse or a schedule nothing of it.
const mayLack = /loadstone_(errors_total|target_operations_per_second|warehouse_\w+)\{/;
const queries = dashboard.panels.flatMap((p) => (p.targets ?? []).map((t) => [p.title, t.expr]));
assert.ok(queries.length >= 15, `${queries.length} queries`);
for (const [title, expr] of queries) {
  const { data } = await get('/prometheus/api/v1/query_range', { query: filled(expr), start, end, step: 1 });
  assert.equal(data.resultType, 'matrix', title);
  if (!mayLack.test(expr)) assert.ok(data.result.length > 0, `${title}: no series for ${filled(expr)}`);
}
const variables = dashboard.templating.list.filter((v) => v.type === 'query');
assert.equal(variables.length, 3);
for (const v of variables) {
  const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(v.query.query);
  const { data } = await get(`/prometheus/api/v1/label/${label}/values`, { 'match[]': filled(selector), start, end });
  // A run from a file has no template.
  assert.ok(data.length > 0 || v.name === 'template', `${v.name} has no values`);
}
console.log(`The ${queries.length} queries of the dashboard have their series.`);
