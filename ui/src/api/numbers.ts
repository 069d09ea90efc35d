/** Whether a number of JavaScript has all digits of one that a database wrote: it is exact to 2^53, or 16 digits. */
function holds(source: string): boolean {
  if (/e/i.test(source)) return true; // a float8, which is such a number
  const digits = source.includes('.') ? source.replace(/\.?0+$/, '') : source;
  return digits.replace(/\D/g, '').length <= 15 || String(Number(source)) === digits;
}

/** Reads JSON, in which every number has all of its digits; one that a number cannot hold becomes its text. */
export function parseExactly(text: string): unknown {
  if (!/[\d.]{16}/.test(text)) return JSON.parse(text);
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  return JSON.parse(text.replace(tokens, (t) => (t.startsWith('"') || holds(t) ? t : `"${t}"`)));
}
