import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const sources = ['src', 'dev', 'test', 'e2e']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((f) => join(folder, f)),
  )
  .filter((f) => statSync(join(root, f)).isFile() && !f.endsWith('schema.d.ts'));

it('a file is short enough to be read at once, and so are its lines', () => {
  expect(sources.length).toBeGreaterThan(100);
  const wrong = sources.flatMap((f) => {
    const lines = readFileSync(join(root, f), 'utf8').trimEnd().split('\n');
    return [
      ...(lines.length > 600 ? [`${f} has ${lines.length} lines`] : []),
      ...lines.flatMap((l, i) => (l.length > 120 ? [`${f}:${i + 1} has ${l.length} columns`] : [])),
    ];
  });
  expect(wrong).toEqual([]);
});

it('a table looks like one', () => {
  const bare = sources.filter((f) => /^src.*\.tsx$/.test(f) && /<table>/.test(readFileSync(join(root, f), 'utf8')));
  expect(bare).toEqual([]);
});

it('message and hint are put together in one place', () => {
  const glued = /message\}(<\/\w+>)? \$?\{[\w.]+\.hint\b/;
  const wrong = sources.filter((f) => /^src.*\.tsx?$/.test(f) && glued.test(readFileSync(join(root, f), 'utf8')));
  expect(wrong).toEqual([]);
});
