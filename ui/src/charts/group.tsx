import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';

export type TimeAxis = 'elapsed' | 'clock';

export interface Zoom {
  from: number;
  to: number;
}

interface Group {
  syncKey: string;
  axis: TimeAxis;
  /** Undefined where the charts have one way of writing time. */
  setAxis?: (a: TimeAxis) => void;
  /** Unix milliseconds of elapsed second 0. */
  start: number;
  /** The second at which the axis begins when not zoomed. */
  from: number;
  zoom: Zoom | null;
  setZoom: (z: Zoom | null) => void;
  /** Charts of a file, which lead to no page of a server. */
  alone?: boolean;
  /** Rises when the theme changes, so that canvases are drawn again in its colours. */
  theme: string;
}

const GroupContext = createContext<Group>({
  syncKey: 'none',
  axis: 'elapsed',
  start: 0,
  from: 0,
  zoom: null,
  setZoom: () => {},
  theme: 'light',
});

export const useGroup = () => useContext(GroupContext);

const axisKey = 'loadstone.axis';

function savedAxis(): TimeAxis {
  try {
    return localStorage.getItem(axisKey) === 'clock' ? 'clock' : 'elapsed';
  } catch {
    return 'elapsed';
  }
}

/** Follows the theme that is set on the document. */
export function useThemeName(): string {
  const [theme, setTheme] = useState(() => document.documentElement.dataset.theme ?? 'light');
  useEffect(() => {
    const o = new MutationObserver(() => setTheme(document.documentElement.dataset.theme ?? 'light'));
    o.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => o.disconnect();
  }, []);
  return theme;
}

/** Charts inside one group share cursor, zoom and the way time is written; axis says which that is, if it is one. */
export function ChartGroup(props: {
  name: string;
  start: number;
  from?: number;
  axis?: TimeAxis;
  alone?: boolean;
  zoom: Zoom | null;
  onZoom: (z: Zoom | null) => void;
  children: ReactNode;
}) {
  const [saved, setAxisState] = useState<TimeAxis>(savedAxis);
  const theme = useThemeName();
  const { name, start, from = 0, zoom, onZoom, axis: only, alone } = props;
  const value = useMemo<Group>(
    () => ({
      syncKey: name,
      axis: only ?? saved,
      setAxis: only
        ? undefined
        : (a) => {
            setAxisState(a);
            try {
              localStorage.setItem(axisKey, a);
            } catch {
              // The choice then lasts for this visit.
            }
          },
      start,
      from,
      zoom,
      setZoom: onZoom,
      theme,
      alone,
    }),
    [name, only, saved, start, from, zoom, onZoom, theme, alone],
  );
  return <GroupContext.Provider value={value}>{props.children}</GroupContext.Provider>;
}
