import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';

export type TimeAxis = 'elapsed' | 'clock';

export interface Zoom {
  from: number;
  to: number;
}

interface Group {
  syncKey: string;
  axis: TimeAxis;
  /** Undefined when the time axis cannot be changed. */
  setAxis?: (a: TimeAxis) => void;
  /** Unix milliseconds of elapsed second 0. */
  start: number;
  /** First second of the axis when not zoomed. */
  from: number;
  zoom: Zoom | null;
  setZoom: (z: Zoom | null) => void;
  /** Charts in a report file, without links to a server. */
  standalone?: boolean;
  /** Changes with the theme, so that canvases are redrawn. */
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

/** useThemeName follows the document's theme. */
function useThemeName(): string {
  const [theme, setTheme] = useState(() => document.documentElement.dataset.theme ?? 'light');
  useEffect(() => {
    const o = new MutationObserver(() => setTheme(document.documentElement.dataset.theme ?? 'light'));
    o.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
    return () => o.disconnect();
  }, []);
  return theme;
}

/** ChartGroup shares cursor, zoom and time format between charts; axis fixes the format. */
export function ChartGroup(props: {
  name: string;
  start: number;
  from?: number;
  axis?: TimeAxis;
  standalone?: boolean;
  zoom: Zoom | null;
  onZoom: (z: Zoom | null) => void;
  children: ReactNode;
}) {
  const [saved, setAxisState] = useState<TimeAxis>(savedAxis);
  const theme = useThemeName();
  const { name, start, from = 0, zoom, onZoom, axis: only, standalone } = props;
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
              // Without storage the choice lasts for this visit.
            }
          },
      start,
      from,
      zoom,
      setZoom: onZoom,
      theme,
      standalone,
    }),
    [name, only, saved, start, from, zoom, onZoom, theme, standalone],
  );
  return <GroupContext.Provider value={value}>{props.children}</GroupContext.Provider>;
}
