/** holds reports whether a JavaScript number can represent the database's number: up to 2^53, or 16 digits. */
function holds(source: string): boolean {
  if (/e/i.test(source)) return true; // a float8, which is such a number
  const digits = source.includes('.') ? source.replace(/\.?0+$/, '') : source;
  return digits.replace(/\D/g, '').length <= 15 || String(Number(source)) === digits;
}

/** parseExactly parses JSON without losing digits: a number that does not fit becomes a string. */
export function parseExactly(text: string): unknown {
  if (!/[\d.]{16}/.test(text)) return JSON.parse(text);
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  return JSON.parse(text.replace(tokens, (t) => (t.startsWith('"') || holds(t) ? t : `"${t}"`)));
}
