import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** stepper runs one step of a test and saves a screenshot when it fails. */
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

/** complaints collects page errors and content policy violations. */
export function complaints(page) {
  const list = [];
  page.on('pageerror', (e) => list.push(e.message));
  page.on('console', (m) => {
    // Some tests cause rejected requests; the page shows them.
    if (m.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(m.text())) list.push(m.text());
  });
  return list;
}

/** until polls read() until ok, and fails with the last value. */
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

/** tile is a tile's figure as shown, "20.6 k/s". */
export async function tile(page, name) {
  const box = page.locator('.tile', { has: page.getByRole('button', { name, exact: true }) });
  return (await box.locator('.tile-value').innerText()).trim();
}

/** exactTile is a tile's full figure, shown on hover. */
export async function exactTile(page, name) {
  const box = page.locator('.tile', { has: page.getByRole('button', { name, exact: true }) });
  const title = await box.locator('.tile-value .quantity').getAttribute('title');
  return Number((title ?? '').replaceAll(',', '').split(' ')[0]);
}

/** opensAbout opens the line of a finished run that holds its notes, its baseline and its limits; it stays open. */
export async function opensAbout(page) {
  const line = page.locator('.about-run');
  await line.waitFor();
  if ((await line.getAttribute('open')) === null) await line.locator('> summary').click();
}

/** opensMore opens the folded fields of a section of the template form. */
export async function opensMore(page, section) {
  const more = page.locator('.form-section', { has: page.getByRole('heading', { name: section, exact: true }) });
  await more.locator('.more > summary').click();
}
