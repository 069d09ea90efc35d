/**
 * firstInvalidLine is the first line that is not UTF-8, from 1; 0 for none. Such a file would replay other values than
 * it holds.
 */
export function firstInvalidLine(bytes: Uint8Array): number {
  const strict = (part: Uint8Array) => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(part);
      return true;
    } catch {
      return false;
    }
  };
  if (strict(bytes)) return 0;
  let line = 1;
  for (let at = 0; at < bytes.length; line++) {
    const end = bytes.indexOf(10, at);
    const next = end < 0 ? bytes.length : end + 1;
    if (!strict(bytes.subarray(at, next))) return line;
    at = next;
  }
  return line;
}
