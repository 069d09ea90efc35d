import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Runs one step of a test; when it fails, keeps a picture of what the user saw. */
export function stepper(t, page, folder = process.env.SHOTS || 'e2e-failures') {
  return (name, act) =>
    t.test(name, async () => {
      try {
        await act();
      } catch (err) {
        mkdirSync(folder, { recursive: true });
        const file = join(folder, `${name.replace(/[^a-z0-9]+/gi, '-')}.png`);
        await page.screenshot({ path: file, fullPage: true }).catch(() => {});
        err.message += `\n  at ${page.url()}, screenshot ${file}`;
        throw err;
      }
    });
}

/** Collects what the browser complains about: errors of the page, and breaches of its content policy. */
export function complaints(page) {
  const list = [];
  page.on('pageerror', (e) => list.push(e.message));
  page.on('console', (m) => {
    // A refused request is the subject of some tests; the page shows it.
    if (m.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(m.text())) list.push(m.text());
  });
  return list;
}

/** Waits until read() satisfies ok and returns what it read; fails with the last thing read. */
export async function until(read, ok, what, ms = 30_000) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    last = await read().catch((e) => e.message);
    if (ok(last)) return last;
    assert.ok(Date.now() < end, `${what}; last seen: ${last}`);
    await new Promise((r) => setTimeout(r, 250));
  }
}

/** The figure of a tile as a user reads it, "20.6 k/s". */
export async function tile(page, name) {
  const box = page.locator('.tile', { has: page.getByRole('button', { name, exact: true }) });
  return (await box.locator('.tile-value').innerText()).trim();
}

/** The figure of a tile in full, as it is shown on hover. */
export async function exactTile(page, name) {
  const box = page.locator('.tile', { has: page.getByRole('button', { name, exact: true }) });
  const title = await box.locator('.tile-value .quantity').getAttribute('title');
  return Number((title ?? '').replaceAll(',', '').split(' ')[0]);
}
