import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { api } from '../api/client';
import { useHasRole } from '../api/queries';
import type { Mark, Payload, RunDetail } from '../api/types';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { MarkDialog } from './MarkDialog';
import { MarkedMoments } from './MarkedMoments';
import { adjustableLoad, useMarks } from './marks';
import './steering.css';

/** typing: a key in a field or dialog is no command. */
const typing = (e: KeyboardEvent) =>
  !!(e.target as HTMLElement | null)?.closest('input, textarea, select, [contenteditable], dialog, [role="menu"]');

/** Steering are the controls of a live run: marks, load changes, full screen. */
export function Steering({ run, live }: { run: RunDetail; live: Payload | null }) {
  const may = useHasRole('operator');
  const marks = useMarks(run);
  const [open, setOpen] = useState<'mark' | 'load' | Mark | null>(null);
  const what = adjustableLoad(run);
  useEffect(() => {
    if (!may) return;
    const key = (e: KeyboardEvent) => {
      if (e.key !== 'm' || e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
      e.preventDefault();
      setOpen('mark');
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, [may]);
  const full = () => {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void document.querySelector('main')?.requestFullscreen();
  };
  return (
    <div className="toolbar steering" role="group" aria-label="Marks and load">
      {may && (
        <button
          type="button"
          className="btn small"
          title="Mark this moment in every chart (m)"
          onClick={() => setOpen('mark')}
        >
          Mark
        </button>
      )}
      {may && live && what && (
        <button type="button" className="btn small" onClick={() => setOpen('load')}>
          {what === 'target_qps' ? 'Change rate' : 'Change connections'}
        </button>
      )}
      <button type="button" className="btn quiet small" onClick={full}>
        Full screen
      </button>
      <MarkedMoments run={run} marks={marks.data?.marks ?? []} onOpen={may ? setOpen : undefined} />
      {open === 'load' && what && <LoadDialog run={run} live={live} what={what} onClose={() => setOpen(null)} />}
      {open !== null && open !== 'load' && (
        <MarkDialog run={run} mark={open === 'mark' ? null : open} onClose={() => setOpen(null)} />
      )}
    </div>
  );
}

function LoadDialog(props: {
  run: RunDetail;
  live: Payload | null;
  what: 'target_qps' | 'connections';
  onClose: () => void;
}) {
  const { run, live, what, onClose } = props;
  const qc = useQueryClient();
  const w = run.scenario_config.workload;
  const now =
    what === 'target_qps'
      ? (live?.target_qps ?? w.target_qps ?? 0)
      : live?.connections.target || w.concurrent_connections;
  const [value, setValue] = useState(String(now));
  const [problem, setProblem] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const save = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await api.put('/api/v1/runs/{id}/load', { path: { id: run.run_id }, body: { [what]: Number(value) } });
      await qc.invalidateQueries({ queryKey: ['run', run.run_id] });
      onClose();
    } catch (err) {
      setProblem(err);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={what === 'target_qps' ? 'Change the rate' : 'Change the connections'} onClose={onClose}>
      <form onSubmit={(e) => void save(e)} className="stack">
        <p className="muted">
          The new load applies immediately. The verdict of the run will record the change and who made it.
        </p>
        <label className="field">
          <span>{what === 'target_qps' ? 'Operations per second' : 'Connections of all workers'}</span>
          <input
            className="input"
            type="number"
            autoFocus
            required
            min={what === 'target_qps' ? 0 : 1}
            step={what === 'target_qps' ? 'any' : 1}
            value={value}
            onChange={(e) => setValue(e.target.value)}
          />
        </label>
        {problem !== null && <ProblemNotice error={problem} />}
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy}>
            Change it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
