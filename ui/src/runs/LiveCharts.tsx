import type { ComponentProps } from 'react';
import { useLocation } from 'wouter';
import { isLive, kinds } from '../api/types';
import { useParam } from '../app/location';
import { capitalize, humanize } from '../design/format';
import { cellFilter, type ExecutionFilter, executionsPath, timeFilter } from './executionFilter';
import { useMarks } from './marks';
import { filterFromText } from './chartFilter';
import { RunCharts } from './RunCharts';
import { presentNames } from './track';
import { useFilteredCharts, useParts } from './useFilteredCharts';

/**
 * LiveCharts are a run's charts with a server: with marks, a filter by kind, statement or worker, and links to
 * executions.
 */
export function LiveCharts(props: Omit<ComponentProps<typeof RunCharts>, 'marks' | 'onCell' | 'onMoment' | 'filter'>) {
  const { run, c } = props;
  const [, navigate] = useLocation();
  const marks = useMarks(run).data?.marks;
  const [text, setText] = useParam('only', '');
  const filter = filterFromText(text);
  const part = useFilteredCharts(run, filter, c);
  const open = (executions: Partial<ExecutionFilter>) =>
    navigate(executionsPath(run.run_id, filter ? { ...executions, [filter.of]: filter.value } : executions));
  return (
    <>
      <PartSelect {...props} text={text} onChange={setText} />
      <RunCharts
        {...props}
        {...(filter && {
          c: part.c,
          state: {
            pending: part.answer.isPending,
            error: part.answer.error,
            retry: () => void part.answer.refetch(),
          },
        })}
        filter={filter}
        marks={marks}
        onMoment={(from, to) => open(timeFilter(from, to))}
        onCell={(from, to, cell) => open(cellFilter(from, to, cell))}
      />
    </>
  );
}

type Choice = { value: string; label: string };

/** PartSelect chooses the chart filter. */
function PartSelect(
  props: Pick<ComponentProps<typeof RunCharts>, 'run' | 'c'> & { text: string; onChange: (t: string) => void },
) {
  const { run, c, text } = props;
  const parts = useParts(run).data;
  const kindNames = presentNames(c, 'kinds', (s) => s.byKind, kinds);
  const presentKinds = kinds.filter((k) => kindNames.includes(k));
  const groups: [string, Choice[]][] = [
    ['Kind', presentKinds.map((k) => ({ value: `kind:${k}`, label: capitalize(humanize(k)) }))],
    ['Statement', isLive(run) ? [] : (parts?.statements ?? []).map((s) => ({ value: `statement:${s}`, label: s }))],
    ['Worker', (parts?.workers ?? []).map((w) => ({ value: `worker:${w}`, label: w }))],
  ];
  const isKnown = text === '' || groups.some(([, all]) => all.some((x) => x.value === text));
  const part = filterFromText(text);
  return (
    <div className="toolbar narrow">
      <label className="row">
        <span className="muted">Charts of</span>
        <select className="input small" value={text} onChange={(e) => props.onChange(e.target.value)}>
          <option value="">the whole run</option>
          {!isKnown && <option value={text}>{part?.value ?? text}</option>}
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
              <option disabled>after the run has finished</option>
            </optgroup>
          )}
        </select>
      </label>
      {part && (
        <span className="muted" role="status">
          The charts show only this {part.of}
          {isLive(run) && ', up to a few seconds ago'}; the figures above are of the whole run.
        </span>
      )}
    </div>
  );
}
