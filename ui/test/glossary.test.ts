import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { glossary, terms } from '../src/design/terms';

const page = readFileSync(new URL('../../docs/glossary.md', import.meta.url), 'utf8');
const documented = new Map([...page.matchAll(/^- \*\*(.+?)\*\*: (.+)$/gm)].map((m) => [m[1]!, m[2]!]));

it('the hints of the page are the sentences of the glossary', () => {
  expect(documented.size).toBeGreaterThan(30);
  for (const [name, sentence] of Object.entries(glossary)) expect(sentence, name).toBe(documented.get(name));
});

it('hints are short sentences without markup', () => {
  for (const [name, tip] of Object.entries(terms)) {
    expect(tip, name).not.toContain('`');
    for (const sentence of tip.split(/(?<=[.!?]) /)) expect(sentence.split(' ').length, sentence).toBeLessThan(41);
  }
});
