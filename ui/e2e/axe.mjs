import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** accessible runs every axe rule, best practices too, on the page and fails with each violation. */
export async function accessible(page, what) {
  // Through the debugger: the page's policy rejects foreign scripts.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  const list = violations.flatMap((v) =>
    v.nodes.map((n) => `${v.impact} ${v.id}: ${n.target.join(' ')}: ${n.failureSummary.replaceAll('\n', ' ')}`),
  );
  assert.deepEqual(list, [], `${what}: ${list.length} breaches of accessibility`);
}
