// The Streams page: its states on the mock server, and a rule that stops a run on a real one.
import assert from 'node:assert/strict';
import { until, opensMore } from './steps.mjs';

const editor = (page) => page.getByRole('textbox', { name: /^Statements/ });
const region = (page, name) => page.getByRole('region', { name, exact: true });

/** showsStreams checks statements, errors, results, running queries and the empty state, on the mock server. */
export async function showsStreams(page, base, step, failWith) {
  await step('streams: an error stands at its line, and nothing was carried out', async () => {
    await page.goto(`${base}/streams`);
    await editor(page).fill('SHOW SINKS;\nSELEC x FROM worker_statistics');
    await editor(page).press('Control+Enter');
    await page.getByText('line 2, column 1').waitFor();
    await page.getByText('did you mean SELECT?').waitFor();
    await page.getByText('No statement was executed').waitFor();
  });
  await step('streams: completes the columns of the source that is read', async () => {
    await editor(page).fill('');
    await editor(page).pressSequentially('SELECT p99Ms FROM worker_statistics WHERE runI');
    await page.getByRole('option', { name: /^runId/ }).waitFor();
    await editor(page).press('Enter');
    assert.equal(await editor(page).inputValue(), 'SELECT p99Ms FROM worker_statistics WHERE runId');
  });
  await step('streams: an example is explained as a picture, then runs', async () => {
    await editor(page).fill('');
    await page.getByRole('button', { name: /^Throughput of the whole cluster/ }).click();
    await page.getByRole('button', { name: 'Explain' }).click();
    const answer = region(page, 'Answer');
    const plan = answer.getByRole('group', { name: /^The plan/ });
    await plan.getByText('Aggregate', { exact: true }).waitFor();
    assert.equal(await plan.getByRole('listitem').count(), 3);
    await editor(page).fill('CREATE SINK mine TYPE PRINT; CREATE QUERY my_rule AS SELECT 1 FROM x INTO mine');
    await editor(page).press('Control+Enter');
    await answer.getByText('Accepted the query my_rule.').waitFor();
    await region(page, 'Continuous queries').getByRole('button', { name: 'my_rule', exact: true }).waitFor();
  });
  await step('streams: a query is watched, and its address is kept', async () => {
    await region(page, 'Continuous queries').getByRole('button', { name: 'throughput', exact: true }).click();
    await page.waitForURL(/query=throughput/);
    const panel = region(page, 'Query throughput');
    await panel.getByText('gives 16.0 /s to Fragment on server').waitFor({ state: 'attached' });
    const rows = async () => (await panel.getByText(/rows in,/).innerText()).split(' ')[0];
    const first = await rows();
    await until(rows, (n) => n !== first, 'figures that change each second');
    await panel
      .getByRole('log')
      .getByText(/,\d{6}$/m)
      .waitFor();
  });
  await step('streams: stopping asks once, and names the query', async () => {
    await page.getByRole('button', { name: 'Actions for my_rule' }).click();
    await page.getByRole('menuitem', { name: 'Stop and drain' }).click();
    const dialog = page.getByRole('dialog', { name: 'Stop and drain my_rule?' });
    await dialog.getByRole('button', { name: 'Stop and drain' }).click();
    await page.getByRole('button', { name: 'my_rule', exact: true }).waitFor({ state: 'detached' });
  });
  await step('streams: a viewer sees what runs, and is offered nothing that changes it', async () => {
    await page.route('**/api/auth/me', async (route) => {
      const answer = await (await route.fetch()).json();
      await route.fulfill({ json: { ...answer, user: { ...answer.user, role: 'viewer' } } });
    });
    await page.goto(`${base}/streams`);
    await page.getByText('requires the role operator').waitFor();
    await region(page, 'Continuous queries').getByText('throughput', { exact: true }).waitFor();
    assert.equal(await editor(page).count(), 0);
    assert.equal(await page.getByRole('button', { name: /^Actions for/ }).count(), 0);
    await page.unroute('**/api/auth/me');
  });
  await step('streams: an empty catalog says what to do, one that cannot be read what failed', async () => {
    await page.request.post(`${base}/mock/streams/clear`);
    await page.goto(`${base}/streams`);
    await page.getByRole('heading', { name: 'No continuous query' }).waitFor();
    await page.getByRole('heading', { name: 'No rule has fired' }).waitFor();
    await page.getByRole('heading', { name: 'No source' }).waitFor();
    await failWith(page, '/api/v1/streams');
    await page.goto(`${base}/streams`);
    await page.getByText('The catalog of streams could not be read.').waitFor({ timeout: 15_000 });
    await failWith(page, '');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'No continuous query' }).waitFor();
  });
}

/** stopsARunByARule creates a rule; a run that breaks it stops with the row as its reason. */
export async function stopsARunByARule(page, base, template) {
  await page.goto(`${base}/streams`);
  // The sources are built in. One second of measurement breaks this rule.
  await editor(page).fill(
    'CREATE SINK halt TYPE GUARDRAIL;\n' +
      'CREATE QUERY busy AS\n' +
      'SELECT runId, SUM(recordsProcessed) AS operations FROM worker_statistics\n' +
      "WHERE phase = 'MEASUREMENT' GROUP BY runId WINDOW TUMBLING(timestamp, SIZE 1 SEC)\n" +
      'HAVING operations > 0 INTO hald',
  );
  await editor(page).press('Control+Enter');
  await page.getByText('line 5, column 28').waitFor();
  await page.getByText(/there is no sink hald/).waitFor();
  await editor(page).fill((await editor(page).inputValue()).replace('hald', 'halt'));
  await page.getByRole('button', { name: 'Explain' }).click();
  await page
    .getByRole('group', { name: /^The plan/ })
    .getByText('Aggregate', { exact: true })
    .waitFor();
  await editor(page).press('Control+Enter');
  await page.getByText('Accepted the query busy.').waitFor();
  const row = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'busy', exact: true }) });
  await row.getByText('Running', { exact: true }).waitFor();

  const { templates } = await (await page.request.get(`${base}/api/templates`)).json();
  await page.goto(`${base}/templates/${templates.find((t) => t.name === template).template_id}`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/\/runs\//);
  const id = new URL(page.url()).pathname.split('/')[2];
  await page
    .getByText(new RegExp(`Rule triggered: busy: runId ${id}, operations \\d+`))
    .first()
    .waitFor({ timeout: 40_000 });
  await page.locator('.run-head .badge', { hasText: 'Failed' }).waitFor();

  await page.goto(`${base}/streams`);
  const alert = region(page, 'Alerts').getByRole('row').filter({ hasText: id });
  await alert.getByText('Stopped a run').waitFor();
  await alert.getByRole('link', { name: 'to the run' }).click();
  await page.waitForURL(new RegExp(`/runs/${id}`));
  await page.goto(`${base}/streams`);
  const drop = async (what, verb, button) => {
    await page.getByRole('button', { name: `Actions for ${what}`, exact: true }).click();
    await page.getByRole('menuitem', { name: verb }).click();
    await page.getByRole('dialog').getByRole('button', { name: button }).click();
  };
  await drop('busy', 'Stop now', 'Stop now');
  await row.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Sinks', exact: true }).click();
  await drop('the sink halt', 'Drop', 'Drop sink');
  await page.getByRole('heading', { name: 'No sink' }).waitFor();
}

/** stopsARunByItsTemplate adds a rule to a template; its run stops with the row as its reason. */
export async function stopsARunByItsTemplate(page, base, template) {
  const { templates } = await (await page.request.get(`${base}/api/templates`)).json();
  const { template_id } = templates.find((t) => t.name === template);
  await page.goto(`${base}/templates/${template_id}`);
  await opensMore(page, 'Verdict');
  await page.getByRole('button', { name: 'Add rule' }).click();
  await page.getByLabel('Rule 1: name').fill('busy');
  const when = page.getByLabel('Rule 1: statement');
  const rule =
    'SELECT SUM(recordsProcessed) AS operations FROM worker_statistics\n' +
    "WHERE phase = 'MEASUREMENT' GROUP BY runId WINDOW TUMBLING(timestamp, SIZE 1 SEC)\n" +
    'HAVING operations > 0';
  await when.fill(rule.replace('recordsProcessed', 'recordsProcesed'));
  const field = page.locator('.rule-field');
  await until(
    () => field.innerText(),
    (s) => s.includes('recordsProcesed') && s.includes('recordsProcessed'),
    'what is wrong under the statement, with what is near',
  );
  await when.fill(rule);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Saved', { exact: false }).first().waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/\/runs\//);
  const reason = /Rule 'busy' triggered: operations \d+/;
  await page.locator('.run-head').getByText(reason).waitFor({ timeout: 40_000 });
  await page.locator('.run-head .badge', { hasText: 'Failed' }).waitFor();
  const rules = region(page, 'Rules');
  await rules.getByText('busy', { exact: true }).waitFor();
  assert.match(await rules.innerText(), /operations \d+/, 'the row that it gave');
}
