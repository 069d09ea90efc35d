// Asks a server everything that can be asked with GET, or compares two folders of such answers (same-answers.sh).
import { mkdirSync, readFileSync, readdirSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [what, ...args] = process.argv.slice(2);
if (what === 'ask') await ask(...args);
else compare(...args);

// ask saves the answer of each GET of the API's document, with the ids of what there is.
async function ask(url, token, to) {
  mkdirSync(to, { recursive: true });
  const get = (path) => fetch(url + path, { headers: { authorization: `Bearer ${token}` }, signal: AbortSignal.timeout(20000) });
  const document = await (await get('/api/openapi.json')).json();
  writeFileSync(join(to, 'openapi.json'), JSON.stringify(document));
  // The first listed of each collection stands for it: /api/runs/{id} is asked with the first of /api/runs.
  const ids = async (collection) => {
    const r = await get(collection);
    if (!r.ok) return [];
    const body = await r.json().catch(() => null);
    const list = Array.isArray(body) ? body : Object.values(body ?? {}).find(Array.isArray) ?? [];
    // Ids are drawn; names are those of the examples, and the same for each version.
    const named = (x) => String(x.run_name ?? x.name ?? '') + String(x.sha256 ?? '');
    return list
      .sort((x, y) => (named(x) < named(y) ? -1 : 1))
      .map((x) => x.run_id ?? x.id ?? x.matrix_id ?? x.template_id ?? x.name ?? x.node_id)
      .filter((x) => typeof x === 'string');
  };
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!methods.get) continue;
    let asked = path;
    while (asked.includes('{')) {
      const before = asked.slice(0, asked.indexOf('/{'));
      const found = await ids(before).catch(() => []);
      asked = asked.replace(/\{[^}]*\}/, encodeURIComponent(found[0] ?? 'none'));
    }
    let answer;
    try {
      const r = await get(asked);
      const type = r.headers.get('content-type') ?? '';
      const stream = type.includes('event-stream');
      answer = { status: r.status, type, body: type.includes('json') ? await r.json() : stream ? null : (await r.text()).slice(0, 20000) };
      if (stream) await r.body.cancel();
    } catch (err) {
      answer = { status: 0, type: String(err.name), body: null };
    }
    writeFileSync(join(to, path.replaceAll('/', '~') + '.json'), JSON.stringify(answer));
  }
}

// plain takes out of a text what differs from run to run.
function plain(text) {
  return text
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replace(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, '<time>')
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{7,}\b/g, '<hash>')
    .replace(/\/tmp\/[^\s"',)]*/g, '<path>')
    .replace(/\d+([.,:]\d+)*/g, '#')
    .replace(/[+-]#/g, '#')
    .replace(/ +/g, ' ');
}

// shape collects, by the path of a field, which types it has and what its texts say. Keys that are drawn or counted are one.
function shape(value, path, into) {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const at = (into[path] ??= { kinds: new Set(), texts: new Set() });
  at.kinds.add(kind);
  if (kind === 'string' && value.length < 600) at.texts.add(plain(value));
  if (kind === 'array') for (const x of value) shape(x, path + '[]', into);
  if (kind === 'object') for (const [k, x] of Object.entries(value)) shape(x, path + '.' + plain(k), into);
  return into;
}

function compare(before, after) {
  let differences = 0;
  let fields = 0;
  let files = 0;
  const tell = (line) => {
    differences++;
    console.log(line);
  };
  const list = (dir) => (existsSync(dir) ? readdirSync(dir).filter((f) => f.endsWith('.json') || f.endsWith('.said')) : []);
  for (const folder of ['.', 'api']) {
    const names = new Set([...list(join(before, folder)), ...list(join(after, folder))]);
    for (const name of [...names].sort()) {
      files++;
      const [a, b] = [before, after].map((d) => {
        const file = join(d, folder, name);
        if (!existsSync(file)) return null;
        const text = readFileSync(file, 'utf8');
        return shape(name.endsWith('.json') ? JSON.parse(text) : text.split('\n'), '', {});
      });
      if (!a || !b) {
        tell(`${name}: only in the ${a ? 'old' : 'new'} version`);
        continue;
      }
      for (const path of new Set([...Object.keys(a), ...Object.keys(b)])) {
        fields++;
        const [x, y] = [a[path], b[path]];
        const kinds = (z) => [...z.kinds].sort().join('|');
        if (!x || !y) tell(`${name} ${path}: only in the ${x ? 'old' : 'new'} version (${kinds(x ?? y)})`);
        else {
          if (kinds(x) !== kinds(y)) tell(`${name} ${path}: ${kinds(x)} became ${kinds(y)}`);
          for (const t of x.texts) if (!y.texts.has(t)) tell(`${name} ${path}: only the old says ${JSON.stringify(t)}`);
          for (const t of y.texts) if (!x.texts.has(t)) tell(`${name} ${path}: only the new says ${JSON.stringify(t)}`);
        }
      }
    }
  }
  console.log(`${files} answers and ${fields} fields were compared; ${differences} differences.`);
  process.exitCode = differences > 0 ? 1 : 0;
}
