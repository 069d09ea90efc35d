import type { ComponentProps } from 'react';
import { useLocation } from 'wouter';
import { isLive, kinds } from '../api/types';
import { useParam } from '../app/location';
import { sentence, words } from '../design/format';
import { cellOf, momentOf, tableOf, type Wanted } from './found';
import { useMarks } from './marks';
import { onlyFrom } from './only';
import { RunCharts } from './RunCharts';
import { present } from './track';
import { useOnly, useParts } from './useOnly';

/**
 * The charts of a run beside its server: with the marks of users, narrowed to a kind, a statement or a run worker, and
 * with cells and seconds that open their executions.
 */
export function LiveCharts(props: Omit<ComponentProps<typeof RunCharts>, 'marks' | 'onCell' | 'onMoment' | 'only'>) {
  const { run, c } = props;
  const [, navigate] = useLocation();
  const marks = useMarks(run).data?.marks;
  const [text, setText] = useParam('only', '');
  const only = onlyFrom(text);
  const part = useOnly(run, only, c);
  const open = (wanted: Partial<Wanted>) =>
    navigate(tableOf(run.run_id, only ? { ...wanted, [only.of]: only.value } : wanted));
  return (
    <>
      <Narrow {...props} text={text} onChange={setText} />
      <RunCharts
        {...props}
        {...(only && {
          c: part.c,
          state: {
            pending: part.answer.isPending,
            error: part.answer.error,
            retry: () => void part.answer.refetch(),
          },
        })}
        only={only}
        marks={marks}
        onMoment={(from, to) => open(momentOf(from, to))}
        onCell={(from, to, cell) => open(cellOf(from, to, cell))}
      />
    </>
  );
}

type Choice = { value: string; label: string };

/** Chooses the part of the run that the charts show. */
function Narrow(
  props: Pick<ComponentProps<typeof RunCharts>, 'run' | 'c'> & { text: string; onChange: (t: string) => void },
) {
  const { run, c, text } = props;
  const parts = useParts(run).data;
  const told = present(c, 'kinds', (s) => s.byKind, kinds);
  const seen = kinds.filter((k) => told.includes(k));
  const groups: [string, Choice[]][] = [
    ['Kind', seen.map((k) => ({ value: `kind:${k}`, label: sentence(words(k)) }))],
    ['Statement', isLive(run) ? [] : (parts?.statements ?? []).map((s) => ({ value: `statement:${s}`, label: s }))],
    ['Worker', (parts?.workers ?? []).map((w) => ({ value: `worker:${w}`, label: w }))],
  ];
  const known = text === '' || groups.some(([, all]) => all.some((x) => x.value === text));
  const only = onlyFrom(text);
  return (
    <div className="toolbar narrow">
      <label className="row">
        <span className="muted">Charts of</span>
        <select className="input small" value={text} onChange={(e) => props.onChange(e.target.value)}>
          <option value="">the whole run</option>
          {!known && <option value={text}>{only?.value ?? text}</option>}
          {groups.map(
            ([name, all]) =>
              all.length > 0 && (
                <optgroup key={name} label={name}>
                  {all.map((x) => (
                    <option key={x.value} value={x.value}>
                      {x.label}
                    </option>
                  ))}
                </optgroup>
              ),
          )}
          {isLive(run) && (
            <optgroup label="Statement">
              <option disabled>when the run is over</option>
            </optgroup>
          )}
        </select>
      </label>
      {only && (
        <span className="muted" role="status">
          The charts show this {only.of} alone{isLive(run) && ', up to a few seconds ago'}; the figures above are of the
          whole run.
        </span>
      )}
    </div>
  );
}
