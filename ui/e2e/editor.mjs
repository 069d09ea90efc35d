// The template editor: error messages, and concurrent edits.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

const yaml = (page) => page.getByRole('textbox', { name: /Template as YAML/ });
const save = (page) => page.getByRole('button', { name: 'Save', exact: true });

const text = (name, connection) => `name: ${name}
target:
  connection: ${connection}
  adapter: postgres
  table_name: orders
workload:
  plugin: mix
  load_mode: CONCURRENCY
  duration_seconds: 20
`;

/** keepsItsMessages checks that an error stays on its line while the text moves, and that a rejection is shown. */
export async function keepsItsMessages(page, base) {
  const name = `editor ${Date.now()}`;
  await page.goto(`${base}/templates/new?as=yaml`);
  await yaml(page).fill(text(name, 'plaground'));
  const flagged = page.getByRole('list', { name: 'Errors' });
  await until(
    () => flagged.innerText(),
    (s) => /line 3/.test(s) && s.includes('did you mean "playground"?'),
    'the connection flagged',
  );
  await yaml(page).fill(`# a comment\n${text(name, 'plaground')}`);
  await until(
    () => flagged.innerText(),
    (s) => /line 4/.test(s) && !/line 3/.test(s),
    'the line moved',
  );
  // Saving works; the run is rejected, on the page that replaces this one.
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/templates\/(?!new)/);
  const refused = page.getByRole('alert').filter({ hasText: 'plaground' });
  await refused.waitFor();
  await new Promise((r) => setTimeout(r, 1_000));
  assert.ok(await refused.isVisible(), 'the message stays');
  await page.getByRole('button', { name: 'Form', exact: true }).click();
  const field = page.locator('.field', { has: page.getByLabel('Connection', { exact: true }) });
  assert.match(await field.innerText(), /did you mean "playground"\?/);
}

/** isSavedByTwo edits one template in two tabs: the second sees the diff and can take either, or both. */
export async function isSavedByTwo(context, base) {
  const one = await context.newPage();
  const name = `shared ${Date.now()}`;
  await one.goto(`${base}/templates/new?as=yaml`);
  await yaml(one).fill(text(name, 'playground'));
  await one.keyboard.press('Control+s');
  await one.waitForURL(/\/templates\/(?!new)/);
  const two = await context.newPage();
  await two.goto(one.url());
  const change = async (page, from, to) => {
    await until(
      () => yaml(page).inputValue(),
      (s) => s.includes(from),
      `${from} in the text`,
    );
    await yaml(page).fill((await yaml(page).inputValue()).replace(from, to));
  };
  await change(two, 'duration_seconds: 20', 'duration_seconds: 25');
  await change(one, 'table_name: orders', 'table_name: shared_orders');
  await one.keyboard.press('Control+s');
  await until(
    () => save(one).isDisabled(),
    (is) => is,
    'the first is saved',
  );
  await two.keyboard.press('Control+s');
  const conflict = two.getByRole('region', { name: /saved this template while/ });
  const differs = (await conflict.locator('.diff').innerText()).replaceAll('\u00a0', ' ');
  for (const line of [
    'table_name: shared_orders',
    'table_name: orders',
    'duration_seconds: 20',
    'duration_seconds: 25',
  ])
    assert.ok(differs.includes(line), `${line} is not in the difference:\n${differs}`);
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click();
  await conflict.waitFor({ state: 'hidden' });
  await one.reload();
  await until(
    () => yaml(one).inputValue(),
    (s) => s.includes('duration_seconds: 25') && !s.includes('shared_orders'),
    'what was chosen',
  );
  await one.close();
  await two.close();
}
