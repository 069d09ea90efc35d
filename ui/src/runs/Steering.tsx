import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { api } from '../api/client';
import { useMay } from '../api/queries';
import type { Mark, Payload, RunDetail } from '../api/types';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { MarkedMoments } from './Marked';
import { changeable, useMarks } from './marks';
import './steering.css';

/** A key that is typed into a field or a dialog is no command. */
const typing = (e: KeyboardEvent) =>
  !!(e.target as HTMLElement | null)?.closest('input, textarea, select, [contenteditable], dialog, [role="menu"]');

/** What users do to a run beside watching it: marks, another load, the whole screen. */
export function Steering({ run, live }: { run: RunDetail; live: Payload | null }) {
  const may = useMay('operator');
  const marks = useMarks(run);
  const [open, setOpen] = useState<'mark' | 'load' | Mark | null>(null);
  const what = changeable(run);
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

function MarkDialog({ run, mark, onClose }: { run: RunDetail; mark: Mark | null; onClose: () => void }) {
  const qc = useQueryClient();
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  // The moment is that of the key, not that of the last letter.
  const [moment] = useState(() => (mark ? Date.parse(mark.at ?? '') : endOf(run)));
  const [text, setText] = useState(mark?.text ?? '');
  const [second, setSecond] = useState(((moment - start) / 1000).toFixed(1));
  const [problem, setProblem] = useState<unknown>(null);
  const done = async (act: Promise<unknown>) => {
    try {
      await act;
      await qc.invalidateQueries({ queryKey: ['marks', run.run_id] });
      onClose();
    } catch (err) {
      setProblem(err);
    }
  };
  const save = (e: FormEvent) => {
    e.preventDefault();
    const at = new Date(start + Number(second) * 1000).toISOString();
    void done(
      mark
        ? api.put('/api/v1/runs/{id}/marks/{mark}', {
            path: { id: run.run_id, mark: mark.mark_id },
            body: { text, at },
          })
        : api.post('/api/v1/runs/{id}/marks', { path: { id: run.run_id }, body: { text, at } }),
    );
  };
  return (
    <Dialog title={mark ? 'Change the mark' : 'Mark this moment'} onClose={onClose}>
      <form onSubmit={save} className="stack">
        <label className="field">
          <span>What happened</span>
          <input
            className="input"
            autoFocus
            required
            maxLength={200}
            placeholder="index created"
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </label>
        <label className="field">
          <span>At second of the run</span>
          <input
            className="input"
            type="number"
            required
            min={0}
            step="any"
            value={second}
            onChange={(e) => setSecond(e.target.value)}
          />
        </label>
        {problem !== null && <ProblemNotice error={problem} />}
        <div className="actions">
          {mark && (
            <button
              type="button"
              className="btn danger"
              onClick={() =>
                void done(
                  api.remove('/api/v1/runs/{id}/marks/{mark}', { path: { id: run.run_id, mark: mark.mark_id } }),
                )
              }
            >
              Delete mark
            </button>
          )}
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary">
            {mark ? 'Save mark' : 'Mark'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Now, or when the run ended. */
const endOf = (run: RunDetail) => (run.end_time ? Date.parse(run.end_time) : Date.now());

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
          The run goes on with the new load at once. Its verdict will say that it was changed, and who did it.
        </p>
        <label className="field">
          <span>{what === 'target_qps' ? 'Operations per second' : 'Connections of all workers together'}</span>
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
