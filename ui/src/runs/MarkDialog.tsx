import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, Problem } from '../api/client';
import type { Mark, RunDetail } from '../api/types';
import { Dialog } from '../design/Dialog';
import { Failed, Notice, ProblemNotice, SkeletonRows } from '../design/States';

/** endOf is the run's end, or now. */
const endOf = (run: RunDetail) => (run.end_time ? Date.parse(run.end_time) : Date.now());

/** MarkDialog adds or changes a mark. It edits the stored mark, not the page's copy. */
export function MarkDialog({ run, mark, onClose }: { run: RunDetail; mark: Mark | null; onClose: () => void }) {
  const stored = useQuery({
    queryKey: ['mark', run.run_id, mark?.mark_id],
    enabled: mark !== null,
    gcTime: 0,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Mark | null> => {
      const path = { id: run.run_id };
      const { marks } = await api.get('/api/v1/runs/{id}/marks', { path, signal, asStored: true });
      return marks?.find((m) => m.mark_id === mark!.mark_id) ?? null;
    },
  });
  const form = (was: Mark | null) => (
    <MarkForm run={run} was={was} reload={async () => (await stored.refetch()).data ?? null} onClose={onClose} />
  );
  return (
    <Dialog title={mark ? 'Change the mark' : 'Mark this moment'} onClose={onClose}>
      {!mark ? (
        form(null)
      ) : stored.data ? (
        form(stored.data)
      ) : stored.data === null ? (
        <Notice tone="bad">Another user deleted this mark.</Notice>
      ) : stored.error ? (
        <Failed what="The mark could not be read." error={stored.error} retry={() => stored.refetch()} />
      ) : (
        <SkeletonRows rows={2} />
      )}
    </Dialog>
  );
}

interface FormProps {
  run: RunDetail;
  /** The mark being changed, as last read; null for a new one. */
  was: Mark | null;
  reload: () => Promise<Mark | null>;
  onClose: () => void;
}

function MarkForm({ run, was, reload, onClose }: FormProps) {
  const qc = useQueryClient();
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const secondOf = (ms: number) => ((ms - start) / 1000).toFixed(1);
  // The moment is when the dialog opened, not when it was saved.
  const [opened] = useState(() => ({ at: was ? Date.parse(was.at ?? '') : endOf(run) }));
  const [text, setText] = useState(was?.text ?? '');
  const [second, setSecond] = useState(secondOf(opened.at));
  const [problem, setProblem] = useState<unknown>(null);
  const [other, setOther] = useState<Mark | null>(null);
  const done = async (act: Promise<unknown>) => {
    setProblem(null);
    try {
      await act;
      await qc.invalidateQueries({ queryKey: ['marks', run.run_id] });
      onClose();
    } catch (err) {
      setProblem(err);
      if (!was || !(err instanceof Problem) || err.status !== 409) return;
      // Show the other user's change and keep the input.
      setOther(await reload());
      await qc.invalidateQueries({ queryKey: ['marks', run.run_id] });
    }
  };
  const save = (e: FormEvent) => {
    e.preventDefault();
    // An unchanged moment keeps its milliseconds, which the field does not show.
    const ms = second === secondOf(opened.at) ? opened.at : start + Number(second) * 1000;
    const at = new Date(ms).toISOString();
    void done(
      was
        ? api.put('/api/v1/runs/{id}/marks/{mark}', {
            path: { id: run.run_id, mark: was.mark_id },
            body: { text, at, was: { text: was.text, at: was.at ?? '' } },
          })
        : api.post('/api/v1/runs/{id}/marks', { path: { id: run.run_id }, body: { text, at } }),
    );
  };
  return (
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
        <span>Second of the run</span>
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
      {problem !== null && other && (
        <p className="muted" role="status">
          Now it is “<bdi>{other.text}</bdi>” at second {secondOf(Date.parse(other.at ?? ''))}. Save again to replace
          it.
        </p>
      )}
      <div className="actions">
        {was && (
          <button
            type="button"
            className="btn danger"
            onClick={() =>
              void done(
                api.remove('/api/v1/runs/{id}/marks/{mark}', {
                  path: { id: run.run_id, mark: was.mark_id },
                  query: { was_text: was.text, was_at: was.at ?? '' },
                }),
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
          {was ? 'Save mark' : 'Mark'}
        </button>
      </div>
    </form>
  );
}
