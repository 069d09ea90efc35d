import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Checks the page as it stands with every rule of axe, best practices too; fails with each breach and where it is. */
export async function accessible(page, what) {
  // Through the debugger: the page's own policy rightly refuses scripts that are not its own.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  const list = violations.flatMap((v) =>
    v.nodes.map((n) => `${v.impact} ${v.id}: ${n.target.join(' ')}: ${n.failureSummary.replaceAll('\n', ' ')}`),
  );
  assert.deepEqual(list, [], `${what}: ${list.length} breaches of accessibility`);
}
