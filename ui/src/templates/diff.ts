/** A line of two texts that are compared. */
export interface DiffLine {
  kind: 'same' | 'theirs' | 'mine';
  text: string;
}

/** Beyond so many pairs of lines, what differs is not aligned. */
const mostPairs = 4_000_000;

/** Compares two texts line by line: what only the first has is theirs, what only the second has is mine. */
export function diffLines(theirs: string, mine: string): DiffLine[] {
  const a = theirs.trimEnd().split('\n');
  const b = mine.trimEnd().split('\n');
  let before = 0;
  while (before < Math.min(a.length, b.length) && a[before] === b[before]) before++;
  let after = 0;
  while (after < Math.min(a.length, b.length) - before && a[a.length - 1 - after] === b[b.length - 1 - after]) after++;
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: 'same', text }));
  return [
    ...same(a.slice(0, before)),
    ...aligned(a.slice(before, a.length - after), b.slice(before, b.length - after)),
    ...same(a.slice(a.length - after)),
  ];
}

/** The longest common subsequence, by its table. */
function aligned(a: string[], b: string[]): DiffLine[] {
  const theirs = (text: string): DiffLine => ({ kind: 'theirs', text });
  const mine = (text: string): DiffLine => ({ kind: 'mine', text });
  if (a.length * b.length > mostPairs) return [...a.map(theirs), ...b.map(mine)];
  const width = b.length + 1;
  const long = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      long[i * width + j] =
        a[i] === b[j]
          ? long[(i + 1) * width + j + 1]! + 1
          : Math.max(long[(i + 1) * width + j]!, long[i * width + j + 1]!);
  const out: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ kind: 'same', text: a[i]! });
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && long[(i + 1) * width + j]! >= long[i * width + j + 1]!))
      out.push(theirs(a[i++]!));
    else out.push(mine(b[j++]!));
  }
  return out;
}

/** What is shown of a comparison: what differs with a few lines around it, and how many lines were left out between. */
export function hunks(lines: DiffLine[], around = 2): (DiffLine | { kind: 'gap'; lines: number })[] {
  const near = lines.map(() => false);
  lines.forEach((l, i) => {
    if (l.kind !== 'same') near.fill(true, Math.max(0, i - around), i + around + 1);
  });
  const out: (DiffLine | { kind: 'gap'; lines: number })[] = [];
  lines.forEach((l, i) => {
    const last = out.at(-1);
    if (near[i]) out.push(l);
    else if (last?.kind === 'gap') last.lines++;
    else out.push({ kind: 'gap', lines: 1 });
  });
  return out;
}
