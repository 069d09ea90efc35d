// Form editing on the mock server: concurrent edits, trial errors, empty choices.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessible } from './axe.mjs';
import { onMock } from './mock.mjs';

const { base, open, find } = onMock(8199);

test('a mark of a run', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'first run', 'COMPLETED');
  const marks = async () => (await (await page.request.get(`${base}/api/v1/runs/${id}/marks`)).json()).marks;
  const dialog = page.getByRole('dialog');
  const second = dialog.getByLabel('Second of the run');
  const text = dialog.getByLabel('What happened');
  const save = dialog.getByRole('button', { name: 'Save mark' });
  const opens = async () => {
    await page.getByRole('list', { name: 'Marked moments' }).getByRole('button').first().click();
    await second.waitFor();
  };
  const [was] = await marks();
  await step('has a second, which is a number', async () => {
    await page.goto(`${base}/runs/${id}`);
    await opens();
    assert.equal(await second.inputValue(), '9.0');
    await accessible(page, 'a mark that is changed');
    for (const none of ['', '-1']) {
      await second.fill(none);
      await save.click();
      assert.ok(await second.evaluate((e) => !e.validity.valid), `second "${none}"`);
      assert.ok(await dialog.isVisible());
    }
    // Letters are rejected.
    await second.fill('');
    await second.pressSequentially('12.5 s');
    assert.equal(await second.inputValue(), '12.5');
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    const [now] = await marks();
    assert.equal(Date.parse(now.at) - Date.parse(was.at), 3_500);
  });
  await step('is not saved over what somebody else has made of it, without a word', async () => {
    const at = new Date(Date.parse(was.at) + 1_234).toISOString();
    const theirs = { text: 'theirs', at };
    await opens();
    const put = await page.request.put(`${base}/api/v1/runs/${id}/marks/${was.mark_id}`, { data: theirs });
    assert.equal(put.status(), 200);
    await text.fill('mine');
    await save.click();
    await dialog.getByText('The mark was changed by ada').waitFor();
    await dialog.getByText('Now it is “theirs” at second 10.2.').waitFor();
    assert.equal(await text.inputValue(), 'mine', 'what was typed');
    assert.equal((await marks())[0].text, 'theirs');
    await accessible(page, 'a mark that somebody else has changed');
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal((await marks())[0].text, 'mine');
  });
  await step('keeps the milliseconds that its field does not show', async () => {
    const at = new Date(Date.parse(was.at) + 1_234).toISOString();
    await page.request.put(`${base}/api/v1/runs/${id}/marks/${was.mark_id}`, { data: { text: 'x', at } });
    await opens();
    await text.fill('named anew');
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    assert.equal(Date.parse((await marks())[0].at), Date.parse(at));
  });
  assert.deepEqual(wrong, []);
});

test('the role of a user', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('is changed from what was seen, and a refusal says what it is now', async () => {
    let sent;
    await page.route(/\/api\/users\/[^/]+$/, async (route) => {
      sent = route.request().postDataJSON();
      const detail = 'The role of grace was changed by somebody else, after you had opened it: it is viewer now.';
      await route.fulfill({ status: 409, json: { code: 'conflict', detail, hint: 'load it again' } });
    });
    await page.goto(`${base}/settings/users`);
    const role = page.getByLabel(/^Role of /).last();
    const before = await role.inputValue();
    await role.selectOption(before === 'admin' ? 'operator' : 'admin');
    await page.getByText('it is viewer now. Load it again.').waitFor();
    assert.equal(sent.was, before);
    assert.equal(await role.inputValue(), before);
  });
  assert.deepEqual(wrong, []);
});

/** The parameter schema of own SQL, as far as the form needs it. */
const binds = { type: 'array', items: { type: 'object', properties: { name: {}, generator: {} } } };
const statement = { type: 'object', properties: { id: { type: 'string' }, sql: { type: 'string' }, binds } };
const parameters = {
  type: 'object',
  properties: { statements: { title: 'Statements', type: 'array', items: statement } },
};

test('own SQL', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('tells a fault of a trial at its parameter, until the statement is another', async () => {
    await page.route('**/api/statements/try', (route) =>
      route.fulfill({
        json: {
          ok: false,
          sql: 'SELECT 1 FROM orders WHERE id = $1',
          statement: 'statement_1',
          kind: 'POINT_LOOKUP',
          writes: false,
          executed: false,
          elapsed_ms: 1,
          row_count: 0,
          failed: { message: 'invalid input syntax for type bigint' },
          faults: [
            { parameter: 'id', value: 'abc', message: 'it is no whole number', hint: 'choose the generator Range' },
          ],
          parameters: [{ name: 'id', type: 'i64', values: ['abc'] }],
        },
      }),
    );
    await page.route('**/api/plugins', async (route) => {
      const answer = await (await route.fetch()).json();
      const mix = answer.plugins.find((p) => p.name === 'mix');
      const manifest = { ...mix.manifest, name: 'sql', title: 'Own SQL', parameters };
      answer.plugins.push({ ...mix, manifest, name: 'sql', sha256: mix.sha256.replace(/^./, '0'), title: 'Own SQL' });
      await route.fulfill({ json: answer });
    });
    await page.goto(`${base}/templates/new`);
    await page.getByLabel('Plugin', { exact: true }).selectOption('sql');
    await page.getByRole('button', { name: 'Add statement' }).click();
    const text = page.getByRole('textbox', { name: /^SQL of statement_1/ });
    await text.fill('SELECT 1 FROM orders WHERE id = :id');
    await page.getByRole('button', { name: 'Try it' }).click();
    const fault = page.locator('.problem', {
      hasText: /it is no whole number\. It is for orders\.id\. Cure: choose the generator Range\./,
    });
    await fault.waitFor();
    await page.locator('.tried').getByText('The statement failed.').waitFor();
    await accessible(page, 'a statement with a fault');
    await text.fill('SELECT 2 FROM orders WHERE id = :id');
    await fault.waitFor({ state: 'detached' });
  });
  assert.deepEqual(wrong, []);
});

test('a new template without any database', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('names no database that is not there, and leads to a new connection', async () => {
    await page.route('**/api/connections', (route) => route.fulfill({ json: { connections: [] } }));
    await page.goto(`${base}/templates/new`);
    const connection = page.getByLabel('Connection', { exact: true });
    await connection.waitFor();
    assert.equal(await connection.inputValue(), '');
    assert.deepEqual(await connection.locator('option').allInnerTexts(), ['Choose…', 'Address in this template…']);
    await accessible(page, 'a template without a database');
    await page.getByRole('link', { name: 'New connection' }).first().click();
    await page.waitForURL(`${base}/connections?new=postgres`);
  });
  assert.deepEqual(wrong, []);
});

test('a template of somebody else', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('says whose it is before it is changed, and offers a copy', async () => {
    const { templates } = await (await page.request.get(`${base}/api/templates`)).json();
    const id = templates[0].template_id;
    const access = { owner: 'ada', owner_id: 'a', restricted: false };
    const changed = (what) => async (route) => {
      const r = await route.fetch();
      await route.fulfill({ json: { ...(await r.json()), ...what } });
    };
    await page.route('**/api/auth/me', changed({ user: { user_id: 'b', name: 'bob', role: 'operator' } }));
    await page.goto(`${base}/templates/${id}`);
    await page.getByRole('button', { name: 'Save', exact: true }).waitFor();
    assert.equal(await page.getByText('This template is').count(), 0, 'what nobody owns every operator may change');
    await page.route((u) => u.pathname === `/api/templates/${id}`, changed({ access }));
    await page.reload();
    await page.getByText('This template is ada’s.').waitFor();
    await accessible(page, 'a template of somebody else');
    await page.getByRole('link', { name: 'Duplicate' }).click();
    await page.waitForURL(`${base}/templates/new?copy=${id}`);
    await page.getByRole('heading', { name: 'New template' }).waitFor();
    assert.equal(await page.getByText('This template is').count(), 0, 'the copy is of whoever makes it');
  });
  assert.deepEqual(wrong, []);
});

test('a connection that was tested before it was saved', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('is tested as what it is saved as, too', async () => {
    const tested = (id) => page.waitForRequest((r) => r.method() === 'POST' && id.test(new URL(r.url()).pathname));
    await page.goto(`${base}/connections?new=postgres`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('tried');
    await dialog.getByLabel('Host').fill('db.example.com');
    await dialog.getByLabel('Database', { exact: true }).fill('app');
    await dialog.getByLabel('User', { exact: true }).fill('bench');
    const first = tested(/^\/api\/connections\/test$/);
    await dialog.getByRole('button', { name: 'Test connection' }).click();
    await first;
    await dialog.getByText('Connected.').waitFor();
    const again = tested(/^\/api\/connections\/[^/]+\/test$/);
    await dialog.getByRole('button', { name: 'Save connection' }).click();
    await again;
    await dialog.waitFor({ state: 'detached' });
  });
  assert.deepEqual(wrong, []);
});
