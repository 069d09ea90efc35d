/** The first line that is not UTF-8, counted from 1, or 0: other values would be issued than the file holds. */
export function badLine(bytes: Uint8Array): number {
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
