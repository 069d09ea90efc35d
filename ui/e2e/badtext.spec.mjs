// Every page with hostile texts in every string field of docs/openapi.json. No text runs, reorders its surroundings,
// hides, widens the page, or breaks it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { onMock } from './mock.mjs';

const { base, open, find } = onMock(8194);
const document_ = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));

const texts = {
  'markup, escapes and marks of direction':
    'Q<img src=x onerror="window.owned=1"><script>window.owned=1</script>" onfocus="window.owned=1" autofocus x=\'' +
    '\u001b]8;;http://x\u0007\u001b[2J\u009b31m\u202egnp.exe\u2066\u200b\ufeff',
  'ten thousand characters': `Q${'x'.repeat(10_000)}`,
};

/** machineKeys are strings for programs, such as ids, that stay unchanged. */
const machineKeys =
  /(^|_)(id|sha256|cursor|version|hash|url|link|secret|path|address)$|^(dsn|source|config|definition|sql|chart|query)$/;

function resolved(schema) {
  let s = schema;
  while (s?.$ref)
    s = s.$ref
      .slice(2)
      .split('/')
      .reduce((at, step) => at?.[step], document_);
  return s;
}

let replacedCount = 0;

/** replaceTexts replaces every free text of a response. */
function replaceTexts(schema, value, text, key = '') {
  const s = resolved(schema);
  if (!s || value === null || value === undefined) return value;
  const either = s.oneOf ?? s.anyOf ?? s.allOf;
  if (either) return replaceTexts(either.find((o) => fits(o, value)) ?? either[0], value, text, key);
  if (Array.isArray(value)) return value.map((v) => replaceTexts(s.items, v, text, key));
  if (typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k, replaceTexts(s.properties?.[k] ?? s.additionalProperties, v, text, k)]),
    );
  if (typeof value !== 'string' || value === '' || s.enum || s.pattern || s.format || machineKeys.test(key))
    return value;
  replacedCount++;
  return text;
}

const fits = (schema, value) => {
  const s = resolved(schema);
  const type = Array.isArray(value) ? 'array' : typeof value;
  return [s?.type].flat().includes(type);
};

const patterns = Object.entries(document_.paths).flatMap(([path, of]) =>
  of.get?.responses?.['200']?.content?.['application/json']
    ? [
        [
          new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`),
          path.split('{').length,
          of.get.responses['200'].content['application/json'].schema,
        ],
      ]
    : [],
);
/** schemaOf finds a path's response schema; exact paths win over parameters. */
const schemaOf = (path) => patterns.filter(([p]) => p.test(path)).sort((a, b) => a[1] - b[1])[0]?.[2];

for (const [what, text] of Object.entries(texts))
  for (const width of [1280, 390])
    test(`${what}, ${width} px`, { timeout: 600_000 }, async (t) => {
      const { page, step, wrong } = await open(t, {
        timeout: 15_000,
        viewport: { width, height: 900 },
        reducedMotion: 'reduce',
      });
      const get = async (path) => (await page.request.get(base + path)).json();
      const [done, live] = [await find(page, 'first run'), await find(page, 'checkout peak', 'RUNNING')];
      const { templates } = await get('/api/templates');
      await page.route(
        (url) => url.pathname.startsWith('/api/'),
        async (route) => {
          if (route.request().method() !== 'GET') return route.continue();
          const schema = schemaOf(new URL(route.request().url()).pathname);
          const response = await route.fetch().catch(() => null);
          if (!response) return;
          if (!schema || response.status() !== 200) return route.fulfill({ response });
          await route.fulfill({ response, json: replaceTexts(schema, await response.json(), text) });
        },
      );
      let shown = 0;
      const pages = [
        '/',
        '/start',
        '/templates',
        '/templates/gallery',
        `/templates/${templates[0].template_id}`,
        `/runs/${live}`,
        `/runs/${await find(page, 'memory guard')}`,
        ...['overview', 'distribution', 'kinds', 'workers', 'errors', 'slowest', 'executions'].map(
          (tab) => `/runs/${done}?tab=${tab}`,
        ),
        ...['accounting', 'environment', 'log', 'export'].map((tab) => `/runs/${done}?tab=${tab}`),
        `/history?selected=${done}`,
        `/compare?runs=${done},${await find(page, 'orders under contention')}`,
        '/matrix/m-1',
        '/connections',
        '/plugins',
        '/nodes',
        '/tables',
        '/query',
        '/explore',
        '/streams',
        '/settings',
      ];
      for (const path of pages)
        await step(path, async () => {
          const before = replacedCount;
          await page.goto(base + path);
          await page.locator('main h1, main h2, main header').first().waitFor();
          // Wait for the requests that depend on the first responses.
          await page.waitForTimeout(700);
          assert.ok(replacedCount > before, 'nothing was spoiled');
          const visibleText = await page.evaluate(() => {
            const unsafe = /[\p{Cf}\p{Cs}\u2028\u2029]|(?![\n\t])\p{Cc}/u;
            const odd = [];
            const walk = window.document.createTreeWalker(window.document.body, NodeFilter.SHOW_ALL);
            let shown = 0;
            for (let n = walk.currentNode; n; n = walk.nextNode()) {
              // Form fields hold the text as stored.
              if (n.nodeType === 3 && n.parentElement?.nodeName === 'TEXTAREA') continue;
              const values =
                n.nodeType === 3
                  ? [n.data]
                  : [...(n.attributes ?? [])]
                      .filter((a) => !(/^(INPUT|OPTION)$/.test(n.nodeName) && a.name === 'value'))
                      .map((a) => a.value);
              for (const v of values) {
                if (unsafe.test(v)) odd.push(`${n.nodeName}: ${JSON.stringify(v.slice(0, 120))}`);
                if (/^Q(<img|xxxx)/.test(v)) shown++;
              }
              if (n.nodeType !== 1) continue;
              if (n.matches('img[src="x"], script:not([src]):not([type]), [onfocus], [onerror], [autofocus][x]'))
                odd.push(n.outerHTML.slice(0, 120));
            }
            return { odd, shown, owned: window.owned, width: window.document.documentElement.scrollWidth };
          });
          assert.deepEqual(visibleText.odd.slice(0, 3), []);
          assert.equal(visibleText.owned, undefined, 'a text was carried out');
          assert.equal(visibleText.width, width, 'the page is too wide');
          if (visibleText.shown > 0) shown++;
          assert.equal(await page.getByRole('heading', { name: 'This page stopped working.' }).count(), 0);
        });
      assert.ok(shown > pages.length / 2, `only ${shown} of ${pages.length} pages showed the text at all`);
      assert.deepEqual(wrong, []);
    });
