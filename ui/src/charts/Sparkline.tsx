/** A small curve without axes; the number beside it says what it means. */
export function Sparkline({
  values,
  width = 96,
  height = 26,
}: {
  values: (number | null)[];
  width?: number;
  height?: number;
}) {
  const shown = values.slice(-60);
  const max = Math.max(...shown.map((v) => v ?? 0), 1e-9);
  const step = shown.length > 1 ? width / (shown.length - 1) : width;
  let path = '';
  let pen = false;
  shown.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    path += `${pen ? 'L' : 'M'}${(i * step).toFixed(1)} ${(height - 1 - (v / max) * (height - 3)).toFixed(1)}`;
    pen = true;
  });
  return (
    <svg
      className="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path
        d={path}
        fill="none"
        stroke="var(--accent)"
        strokeWidth="1.5"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
