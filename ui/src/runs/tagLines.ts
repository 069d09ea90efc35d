type Tags = Record<string, string>;

/** formatTags writes one tag per line, by name. */
export function formatTags(tags: Tags | null | undefined): string {
  return Object.entries(tags ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([k, v]) => `${k}:${v}`)
    .join('\n');
}

/** parseTags parses one tag per line, or returns which line is invalid. */
export function parseTags(lines: string): Tags | string {
  const tags = new Map<string, string>();
  for (const [i, line] of lines.split('\n').entries()) {
    if (!line.trim()) continue;
    const at = line.indexOf(':');
    const key = line.slice(0, Math.max(0, at)).trim();
    const value = line.slice(at + 1).trim();
    if (at < 1 || !key || !value) return `Line ${i + 1} is not a tag. Use the form name:value.`;
    if (tags.has(key)) return `Line ${i + 1} repeats the tag ${key}.`;
    tags.set(key, value);
  }
  return Object.fromEntries(tags);
}
