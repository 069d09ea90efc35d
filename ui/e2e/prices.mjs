import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** editsPrices makes an invalid edit, a valid one, and reverts it. */
export async function editsPrices(page, base) {
  await page.goto(`${base}/settings/prices`);
  const panel = page.getByRole('region', { name: 'Price list' });
  const says = (what) =>
    until(
      () => panel.innerText(),
      (text) => what.test(text),
      `the panel says ${what}`,
    );
  await says(/A credit costs\s+3 USD/);
  await panel.getByRole('button', { name: 'Edit' }).click();
  const editor = panel.getByRole('textbox', { name: 'Price list' });
  const save = panel.getByRole('button', { name: 'Save', exact: true });
  await editor.waitFor();
  assert.ok(await save.isDisabled(), 'there is nothing to save yet');
  const before = await editor.inputValue();
  const write = async (price) => {
    const text = before.replace(/^credit_price:.*$/m, `credit_price: ${price}`);
    assert.notEqual(text, before, 'the list has a price');
    await editor.fill(text);
  };
  const line = before.split('\n').findIndex((l) => l.startsWith('credit_price:')) + 1;
  await write('-3');
  await save.click();
  await says(new RegExp(`line ${line}\\b[^]*credit_price`));
  assert.match(await editor.inputValue(), /^credit_price: -3$/m, 'what was typed stays');
  await write('2.25');
  await save.click();
  await page.getByText('The price list was saved.').waitFor();
  await says(/A credit costs\s+2\.25 USD/);
  await page.reload();
  await says(/A credit costs\s+2\.25 USD[^]*by admin/);
  await panel.getByRole('button', { name: 'Edit' }).click();
  await panel.getByRole('button', { name: 'Remove this list' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove price list' }).click();
  await page.getByText('Price list removed.').waitFor();
  await says(/A credit costs\s+3 USD/);
}
