import type { ReactNode } from 'react';

const paths: Record<string, ReactNode> = {
  home: <path d="M3 8.5 9 3l6 5.5V15a.5.5 0 0 1-.5.5h-3.7V11H7.2v4.5H3.5A.5.5 0 0 1 3 15z" />,
  templates: <path d="M4 2.5h7l3.5 3.5v9.5H4zM11 2.5V6h3.5M6.5 9h5M6.5 12h5" />,
  history: <path d="M2.8 9a6.2 6.2 0 1 0 2-4.5M2.8 2.8v3h3M9 5.5V9l2.6 1.8" />,
  connections: (
    <path
      d="M3 5c0-1.4 2.7-2.5 6-2.5S15 3.6 15 5 12.300 7.500 9 7.500 3 6.400 3 5z
      M3 5v8c0 1.400 2.700 2.500 6 2.500s6-1.100 6-2.500V5
      M3 9c0 1.400 2.700 2.500 6 2.500s6-1.100 6-2.500"
    />
  ),
  plugins: <path d="M6.500 2.500v3M11.500 2.500v3M4 5.500h10v3a5 5 0 0 1-10 0zM9 13.500v2.500" />,
  nodes: <path d="M3 3h12v4.500H3zM3 10.500h12V15H3zM5.500 5.300h.01M5.500 12.800h.01M8.500 5.300h4M8.500 12.800h4" />,
  settings: (
    <path
      d="M3 5.500h6M13 5.500h2M3 12.500h2M9 12.500h6M9 5.500a2 2 0 1 0 4 0 2 2 0 0 0-4 0z
      M5 12.500a2 2 0 1 0 4 0 2 2 0 0 0-4 0z"
    />
  ),
  play: <path d="M5.500 3.500v11l9-5.500z" fill="currentColor" />,
  stop: <path d="M4.500 4.500h9v9h-9z" fill="currentColor" />,
  plus: <path d="M9 3.500v11M3.500 9h11" />,
  back: <path d="M11 4 6 9l5 5" />,
  search: <path d="M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l3.500 3.500" />,
  more: <path d="M4 9h.01M9 9h.01M14 9h.01" strokeWidth="2.6" />,
  close: <path d="m4.500 4.500 9 9M13.500 4.500l-9 9" />,
  check: <path d="m3.500 9.500 3.500 3.500 7.500-8" />,
  warn: <path d="M9 2.500 16 15H2zM9 7v3.500M9 12.800h.01" />,
  alert: <path d="M9 2.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM9 5.500v4.200M9 12.300h.01" />,
  info: <path d="M9 2.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM9 8.300v4.200M9 5.600h.01" />,
  sun: (
    <path
      d="M9 12.200a3.200 3.200 0 1 0 0-6.400 3.200 3.200 0 0 0 0 6.400zM9 1.800v1.600M9 14.600v1.600
      M1.800 9h1.600M14.600 9h1.600M3.900 3.900 5 5M13 13l1.100 1.100M14.100 3.900 13 5
      M5 13l-1.100 1.100"
    />
  ),
  moon: <path d="M15 10.500A6.300 6.300 0 0 1 7.500 3 6.300 6.300 0 1 0 15 10.500z" />,
  system: <path d="M2.500 3.500h13v8.500h-13zM6.500 15h5M9 12v3" />,
  copy: <path d="M6.500 6.500h8v8h-8zM3.500 11.500v-8h8" />,
  trash: <path d="M3.500 5h11M7 5V3h4v2M5 5l.7 10h6.600L13 5" />,
  edit: <path d="m3.500 14.500.7-3.200 7.700-7.700 2.500 2.500-7.700 7.700z" />,
  upload: <path d="M9 11.500V3M5.500 6.200 9 2.800l3.500 3.400M3 15h12" />,
  download: <path d="M9 2.500v8.500M5.500 7.800 9 11.200l3.500-3.400M3 15h12" />,
  explore: <path d="M2.500 15.500h13M3 12l3.500-4 3 2.500L15 3.500M11.500 3.500H15V7" />,
  streams: (
    <path
      d="M2.500 5c2-2 4.300-2 6.500 0s4.500 2 6.500 0M2.500 9c2-2 4.300-2 6.500 0s4.500 2 6.500 0
      M2.500 13c2-2 4.300-2 6.500 0s4.500 2 6.500 0"
    />
  ),
  table: <path d="M2.500 3.500h13v11h-13zM2.500 7.500h13M7 7.500v7" />,
  keyboard: <path d="M2 5h14v8.500H2zM4.800 7.800h.01M7.600 7.800h.01M10.400 7.800h.01M13.200 7.800h.01M5.500 11h7" />,
  users: <path d="M7 8.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM2.500 14.500a4.500 4.500 0 0 1 9 0M12 8h4" />,
  signout: <path d="M7 3H3.500v12H7M11 5.500 14.500 9 11 12.500M14.500 9H7" />,
  chart: <path d="M3 3v12h12M5.500 11.500l3-3.500 2.500 2 3.500-5" />,
  clock: <path d="M9 2.500a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13zM9 5.500V9l2.500 1.500" />,
  zoomout: <path d="M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10zM12 12l3.500 3.500M5.800 8h4.400" />,
  refresh: <path d="M15 9a6 6 0 1 1-1.900-4.400M15.200 2.600V5.500h-3" />,
  link: (
    <path
      d="M7.500 10.500a3 3 0 0 0 4.300 0l2.400-2.400a3 3 0 0 0-4.300-4.300l-.9.900
      M10.500 7.500a3 3 0 0 0-4.300 0L3.800 9.900a3 3 0 0 0 4.300 4.300l.9-.9"
    />
  ),
  file: <path d="M4.500 2.500h6l3.500 3.500v9.500h-9.500zM10.500 2.500V6H14" />,
};

/** Icon is a decorative line icon in the text's colour. */
export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 18 18"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      {paths[name]}
    </svg>
  );
}

/** Mark is a state's shape, so that colour is never the only sign. */
export function Mark({
  shape,
  size = 8,
}: {
  shape: 'dot' | 'ring' | 'square' | 'triangle' | 'cross' | 'half';
  size?: number;
}) {
  const body: Record<typeof shape, ReactNode> = {
    dot: <circle cx="5" cy="5" r="4.500" fill="currentColor" />,
    ring: <circle cx="5" cy="5" r="3.600" fill="none" stroke="currentColor" strokeWidth="1.800" />,
    square: <rect x="1" y="1" width="8" height="8" fill="currentColor" />,
    triangle: <path d="M5 .500 9.800 9.500H.200z" fill="currentColor" />,
    cross: <path d="m1.500 1.500 7 7m0-7-7 7" stroke="currentColor" strokeWidth="2" />,
    half: (
      <path d="M5 .500a4.500 4.500 0 1 0 0 9zM5 .500a4.500 4.500 0 0 1 0 9" fill="currentColor" fillOpacity=".85" />
    ),
  };
  return (
    <svg width={size} height={size} viewBox="0 0 10 10" aria-hidden="true">
      {body[shape]}
    </svg>
  );
}
