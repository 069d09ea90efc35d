import type { ComponentProps } from 'react';
import { useLocation } from 'wouter';
import { cellOf, tableOf } from './found';
import { useMarks } from './marks';
import { RunCharts } from './RunCharts';

/** The charts of a run beside its server: with the marks of users, and cells that open their executions. */
export function LiveCharts(props: Omit<ComponentProps<typeof RunCharts>, 'marks' | 'onCell'>) {
  const [, navigate] = useLocation();
  const marks = useMarks(props.run).data?.marks;
  return (
    <RunCharts
      {...props}
      marks={marks}
      onCell={(from, to, cell) => navigate(tableOf(props.run.run_id, cellOf(from, to, cell)))}
    />
  );
}
