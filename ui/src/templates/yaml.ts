// YAML for the editor only: a fallback text for an invalid form, and colours. The server parses and writes templates.

/** scalar writes one value. */
export function scalar(v: unknown): string {
  if (v === null || v === undefined) return 'null';
  if (typeof v !== 'string') return JSON.stringify(v);
  const plain =
    v !== '' &&
    !/^[\s\-?:,[\]{}#&*!|>'"%@`]/.test(v) &&
    !/[:#]\s|\s#|:$|\s$|[\n\t\r]/.test(v) &&
    !/^(?:true|false|null|yes|no|on|off|~)$/i.test(v) &&
    !/^[-+]?[.\d]/.test(v);
  return plain ? v : JSON.stringify(v);
}

const isPlain = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);

/** writeYaml writes a JSON document as block YAML. */
export function writeYaml(doc: unknown, indent = ''): string {
  if (Array.isArray(doc)) {
    return doc
      .map((v) =>
        isPlain(v) || Array.isArray(v) ? `${indent}-\n${writeYaml(v, `${indent}  `)}` : `${indent}- ${scalar(v)}\n`,
      )
      .join('');
  }
  if (!isPlain(doc)) return `${indent}${scalar(doc)}\n`;
  return Object.entries(doc)
    .filter(([, v]) => v !== undefined)
    .map(([k, v]) => {
      const key = `${indent}${scalar(k)}:`;
      if (isPlain(v)) return Object.keys(v).length ? `${key}\n${writeYaml(v, `${indent}  `)}` : `${key} {}\n`;
      if (Array.isArray(v)) return v.length ? `${key}\n${writeYaml(v, `${indent}  `)}` : `${key} []\n`;
      return `${key} ${scalar(v)}\n`;
    })
    .join('');
}

export interface Piece {
  text: string;
  kind: '' | 'key' | 'string' | 'number' | 'comment';
}

/** colour splits a YAML line into coloured pieces; joined, they equal the line. */
export function colour(line: string): Piece[] {
  const out: Piece[] = [];
  let i = 0;
  const push = (text: string, kind: Piece['kind']) => {
    if (text === '') return;
    const last = out[out.length - 1];
    if (last && last.kind === kind) last.text += text;
    else out.push({ text, kind });
    i += text.length;
  };
  while (i < line.length) {
    const rest = line.slice(i);
    const before = i === 0 ? ' ' : line[i - 1]!;
    let m: RegExpExecArray | null;
    if (rest[0] === '#' && /\s/.test(before)) push(rest, 'comment');
    else if (/[\s{,[-]/.test(before) && (m = /^(?:"[^"]*"|'[^']*'|[\w.@/-]+)(?=\s*:(?:\s|$))/.exec(rest)))
      push(m[0], 'key');
    else if ((m = /^"(?:[^"\\]|\\.)*"?|^'(?:[^']|'')*'?/.exec(rest))) push(m[0], 'string');
    else if (
      /[\s:[{,]/.test(before) &&
      (m = /^[-+]?\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?(?=\s*(?:$|[,\]}]|\s#))/i.exec(rest))
    )
      push(m[0], 'number');
    else if (/[\s:[{,]/.test(before) && (m = /^(?:true|false|null)(?=\s*(?:$|[,\]}]|\s#))/.exec(rest)))
      push(m[0], 'number');
    else push(rest[0]!, '');
  }
  return out;
}

/** hasComments reports comments that rewriting would lose. */
export function hasComments(source: string): boolean {
  return source.split('\n').some((l) => colour(l).some((p) => p.kind === 'comment'));
}
