interface Props {
  values: (number | null)[];
  width?: number;
  height?: number;
  /** How many of the last values are drawn. */
  last?: number;
  /** End of the axis, for curves that are compared; the largest value by default. */
  max?: number;
  /** Accessible label; by default the number next to it describes the curve. */
  label?: string;
  color?: string;
  fill?: boolean;
}

/** Sparkline draws a small curve without axes, from zero. */
export function Sparkline({
  values,
  width = 96,
  height = 26,
  last = 60,
  max,
  label,
  color = '--accent',
  fill = false,
}: Props) {
  const shown = values.slice(-last);
  const top =
    max ??
    Math.max(
      shown.reduce<number>((m, v) => Math.max(m, v ?? 0), 0),
      1e-9,
    );
  const step = shown.length > 1 ? width / (shown.length - 1) : width;
  let path = '';
  let area = '';
  let pen = false;
  let x = 0;
  shown.forEach((v, i) => {
    if (v === null) {
      if (pen) area += `V${height}Z`;
      pen = false;
      return;
    }
    x = i * step;
    const y = (height - 1 - (Math.min(v, top) / top) * (height - 3)).toFixed(1);
    path += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y}`;
    area += pen ? `L${x.toFixed(1)} ${y}` : `M${x.toFixed(1)} ${height}V${y}`;
    pen = true;
  });
  if (pen) area += `V${height}Z`;
  return (
    <svg
      className="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role={label ? 'img' : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : true}
    >
      {label && <title>{label}</title>}
      {fill && <path d={area} fill={`var(${color})`} opacity="0.16" />}
      <path
        d={path}
        fill="none"
        stroke={`var(${color})`}
        strokeWidth="1.5"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
