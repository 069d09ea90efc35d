import type { Mark, RunDetail } from '../api/types';
import { elapsed } from '../design/format';
import { loadChanges, loadChangeText } from './marks';
import './steering.css';

/** MarkedMoments lists marks and load changes in time order. */
export function MarkedMoments(props: { run: RunDetail; marks: Mark[]; onOpen?: (m: Mark) => void }) {
  const { run, marks, onOpen } = props;
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const second = (iso: string | null) => (Date.parse(iso ?? '') - start) / 1000;
  const all = [
    ...loadChanges(run).map((e) => ({ t: second(e.created_at), change: e, mark: null })),
    ...marks.map((m) => ({ t: second(m.at), change: null, mark: m })),
  ].sort((a, b) => a.t - b.t);
  if (all.length === 0) return null;
  return (
    <ul className="marks" aria-label="Marked moments">
      {all.map(({ t, change, mark }) =>
        change ? (
          <li
            key={`load ${change.sequence_id}`}
            className="chip"
            title={
              change.event_data.initiated_by
                ? `changed by ${change.event_data.initiated_by}`
                : 'The load of the run was changed.'
            }
          >
            <span className="num">{elapsed(t)}</span> {loadChangeText(change)}
          </li>
        ) : (
          <li key={mark.mark_id}>
            {onOpen ? (
              <button
                type="button"
                className="chip mark"
                title={`${mark.text} (${mark.made_by})`}
                onClick={() => onOpen(mark)}
              >
                <span className="num">{elapsed(t)}</span> <bdi>{mark.text}</bdi>
              </button>
            ) : (
              <span className="chip mark" title={mark.text}>
                <span className="num">{elapsed(t)}</span> <bdi>{mark.text}</bdi>
              </span>
            )}
          </li>
        ),
      )}
    </ul>
  );
}
