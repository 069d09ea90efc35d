// Saved queries, a viewer's table pages, and sorting on a phone, on the mock server.
import assert from 'node:assert/strict';
import { accessible } from './axe.mjs';
import { until } from './steps.mjs';

const editor = (page) => page.getByRole('textbox', { name: /^Query/ });
const panel = (page) => page.getByRole('region', { name: 'Saved queries' });

/** keepsQueries saves, renames, overwrites from another tab, and deletes a query; links to it report its deletion. */
export async function keepsQueries(page, other, base, step) {
  const named = async (button, name) => {
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: button, exact: true }).click();
  };
  await step('a query is saved under a name that nobody has', async () => {
    await page.goto(`${base}/query`);
    await editor(page).fill('SELECT 1 AS first');
    await panel(page).getByRole('button', { name: 'Save as…' }).click();
    await named('Save', 'P95 by night');
    await page.getByText('There is a saved query called "P95 by night" already.').waitFor();
    await named('Save', 'first');
    await panel(page)
      .getByRole('button', { name: /^first/ })
      .waitFor();
    await page.waitForURL((u) => u.searchParams.get('saved') === 'first');
  });
  await step('who saves over what another tab has saved is asked, and loses nothing', async () => {
    await other.goto(page.url());
    await until(
      () => editor(other).inputValue(),
      (s) => s === 'SELECT 1 AS first',
      'the saved query',
    );
    await editor(other).fill('SELECT 2 AS theirs');
    await panel(other).getByRole('button', { name: 'Save', exact: true }).click();
    await other.getByText('Saved as first.').waitFor();
    // Another change refetches the list: it has a newer version than the edited one.
    await panel(page).getByRole('button', { name: 'Actions for P95 by night' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await named('Rename', 'P95 each night');
    await panel(page)
      .getByRole('button', { name: /^P95 each night/ })
      .waitFor();
    await editor(page).fill('SELECT 3 AS mine');
    await panel(page).getByRole('button', { name: 'Save', exact: true }).click();
    await panel(page).getByText('after you had opened it').waitFor();
    await accessible(page, 'a saved query that another tab has changed');
    assert.equal(await editor(page).inputValue(), 'SELECT 3 AS mine');
    await panel(page).getByRole('button', { name: 'Open theirs' }).click();
    assert.equal(await editor(page).inputValue(), 'SELECT 2 AS theirs');
    await editor(page).fill('SELECT 4 AS both');
    await panel(page).getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved as first.').first().waitFor();
    await panel(page).getByText('after you had opened it').waitFor({ state: 'detached' });
  });
  await step('it is renamed, and stays open', async () => {
    await panel(page).getByRole('button', { name: 'Actions for first' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await named('Rename', 'second');
    await panel(page)
      .getByRole('button', { name: /^second/ })
      .waitFor();
    assert.equal(
      await panel(page)
        .getByRole('button', { name: /^first/ })
        .count(),
      0,
    );
    await page.waitForURL((u) => u.searchParams.get('saved') === 'second');
    assert.equal(await editor(page).inputValue(), 'SELECT 4 AS both');
  });
  await step('a link to what is gone says so', async () => {
    await other.goto(`${base}/query?saved=first`);
    await other.getByText('There is no saved query “first”.').waitFor();
    await panel(page).getByRole('button', { name: 'Actions for second' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await panel(page)
      .getByRole('button', { name: /^second/ })
      .waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).searchParams.get('saved'), null);
    assert.equal(await page.getByText('There is no saved query').count(), 0);
  });
}

/** looksAtTables checks that viewers see no actions. */
export async function looksAtTables(page, base, step) {
  const role = (role) => page.request.post(`${base}/mock/role`, { data: { role } });
  const offered = ['Refresh now', 'Suspend', 'Resume', 'Save as…', 'Create table', 'Mark', 'Run again'];
  const count = async () => {
    const found = [];
    for (const name of offered)
      if ((await page.getByRole('button', { name, exact: true }).count()) > 0) found.push(name);
    for (const name of ['Edit', 'New table', 'Keep it as a table'])
      if ((await page.getByRole('link', { name }).count()) > 0) found.push(name);
    for (const label of await page.getByRole('button', { name: /^(Actions|More) for/ }).all())
      found.push(await label.getAttribute('aria-label'));
    return found;
  };
  const places = [
    ['/table/p95_by_night', 'P95 of the hybrid table', ['Refresh now', 'Suspend', 'Edit', 'More for p95_by_night']],
    ['/table/quiet', 'Suspended', ['Resume', 'Edit', 'More for quiet']],
    ['/query', 'Saved queries', ['Save as…', 'Keep it as a table', 'Actions for P95 each night']],
  ];
  await step('a viewer is offered nothing that would be refused', async () => {
    for (const who of ['operator', 'viewer']) {
      await role(who);
      for (const [path, text, all] of places) {
        await page.goto(base + path);
        await page.getByText(text).first().waitFor();
        await page.locator('.rail-user').getByText(who).waitFor();
        await until(
          count,
          (found) => JSON.stringify(found) === JSON.stringify(who === 'viewer' ? [] : all),
          `what ${path} offers to who is ${who}`,
          5_000,
        );
      }
    }
    await page.goto(`${base}/tables`);
    await page.getByText('run_summary').first().waitFor();
    assert.deepEqual(await count(), []);
    await page.goto(`${base}/table/quiet/edit`);
    await page.getByText('Only operators can create and change tables').waitFor();
    await accessible(page, 'an editor for who may not edit');
  });
  await role('admin');
}

/** sortsOnAPhone: a phone sorts above the cards, as there are no headers. */
export async function sortsOnAPhone(page, base, step) {
  await step('runs are put into another order on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${base}/history`);
    const names = () => page.locator('tbody tr a.name').allInnerTexts();
    await page.locator('tbody tr').first().waitFor();
    const newest = await names();
    await page.getByLabel('Order', { exact: true }).selectOption('By name');
    await page.waitForURL((u) => u.searchParams.get('sort') === 'name');
    // A page of the list: each order shows other runs.
    const rises = (got) => got.every((n, i) => i === 0 || got[i - 1].toLowerCase() <= n.toLowerCase());
    assert.ok(!rises(newest) && !rises(newest.toReversed()), 'the newest first are in no order of names');
    const same = (want) => (got) => JSON.stringify(got) === JSON.stringify(want);
    await until(names, (got) => got.length > 0 && rises(got), 'runs by name', 5_000);
    await page.getByRole('button', { name: 'Ascending: reverse the order' }).click();
    await until(names, (got) => got.length > 0 && rises(got.toReversed()), 'runs by name, the last first', 5_000);
    await page.getByLabel('Order', { exact: true }).selectOption('Newest first');
    await until(names, same(newest), 'the newest first', 5_000);
    assert.equal(new URL(page.url()).searchParams.get('sort'), null);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  });
}
