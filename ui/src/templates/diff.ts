/** DiffLine is a line of a diff. */
interface DiffLine {
  kind: 'same' | 'theirs' | 'mine';
  text: string;
}

/** maxPairs: larger texts are not aligned. */
const maxPairs = 4_000_000;

/** diffLines compares by line: lines only in the first are theirs, only in the second are mine. */
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

/** aligned computes the longest common subsequence. */
function aligned(a: string[], b: string[]): DiffLine[] {
  const theirs = (text: string): DiffLine => ({ kind: 'theirs', text });
  const mine = (text: string): DiffLine => ({ kind: 'mine', text });
  if (a.length * b.length > maxPairs) return [...a.map(theirs), ...b.map(mine)];
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

/** hunks returns changed lines with context, and the count of skipped lines between. */
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
