import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api } from '../api/client';
import type { RunDetail, RunNote } from '../api/types';
import { OperatorOnly } from '../app/OperatorOnly';
import { Dialog } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Failed, ProblemNotice, SkeletonRows } from '../design/States';
import { formatTags, parseTags } from './tagLines';

/** useNote reads the note of a run. */
export const useNote = (id: string) =>
  useQuery({
    queryKey: ['note', id],
    queryFn: ({ signal }) => api.get('/api/runs/{id}/note', { path: { id }, signal, asStored: true }),
  });

/** NotePanel shows a run's note; nothing without one. */
export function NotePanel({ run, onEdit }: { run: RunDetail; onEdit: () => void }) {
  const note = useNote(run.run_id).data;
  if (!note?.text) return null;
  return (
    <section className="panel pad note" aria-label="Note">
      <p className="note-text" dir="auto">
        {note.text}
      </p>
      <div className="row muted">
        <span title={dateTime(note.updated_at)}>
          {note.updated_by}, {ago(note.updated_at)}
        </span>
        <OperatorOnly>
          <button type="button" className="btn quiet small" onClick={onEdit}>
            <Icon name="edit" size={14} /> Edit
          </button>
        </OperatorOnly>
      </div>
    </section>
  );
}

/** StoredNote is the note when the dialog opened, not the page's copy. */
type StoredNote = { note: RunNote; tags: Record<string, string> };

/** NoteDialog edits a run's note and tags. */
export function NoteDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const id = run.run_id;
  const stored = useQuery({
    queryKey: ['note and tags', id],
    gcTime: 0,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<StoredNote> => {
      const [note, there] = await Promise.all([
        api.get('/api/runs/{id}/note', { path: { id }, signal, asStored: true }),
        api.get('/api/runs/{id}', { path: { id }, signal, asStored: true }),
      ]);
      return { note, tags: there.scenario_config.tags ?? {} };
    },
  });
  return (
    <Dialog title={`Note and tags of “${run.test_name}”`} wide onClose={onClose}>
      {stored.data ? (
        <NoteForm id={id} stored={stored.data} reload={() => stored.refetch()} onClose={onClose} />
      ) : stored.error ? (
        <Failed what="The note could not be read." error={stored.error} retry={() => stored.refetch()} />
      ) : (
        <SkeletonRows rows={3} />
      )}
    </Dialog>
  );
}

function NoteForm(props: { id: string; stored: StoredNote; reload: () => Promise<unknown>; onClose: () => void }) {
  const { note, tags: was } = props.stored;
  const [text, setText] = useState(note.text);
  const [lines, setLines] = useState(() => formatTags(was));
  // The state when the form opened: unchanged fields are not saved.
  const [opened] = useState({ text, lines: formatTags(was) });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const qc = useQueryClient();
  const id = useId();
  const tags = parseTags(lines);
  const save = async () => {
    if (typeof tags === 'string') return;
    setBusy(true);
    setError(null);
    const path = { id: props.id };
    try {
      if (text !== opened.text && text !== note.text)
        qc.setQueryData(
          ['note', props.id],
          await api.put('/api/runs/{id}/note', { path, body: { text, version: note.version } }),
        );
      if (formatTags(tags) !== opened.lines && formatTags(tags) !== formatTags(was)) {
        await api.put('/api/runs/{id}/tags', { path, body: { tags, was } });
        await qc.invalidateQueries({ queryKey: ['run', props.id] });
        void qc.invalidateQueries({ queryKey: ['runs'] });
      }
      props.onClose();
    } catch (e) {
      setError(e);
      // Show the other user's change and keep the input.
      await Promise.all([
        props.reload(),
        qc.invalidateQueries({ queryKey: ['note', props.id] }),
        qc.invalidateQueries({ queryKey: ['run', props.id] }),
      ]);
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(e) => {
        e.preventDefault();
        void save();
      }}
    >
      {error !== null && <ProblemNotice error={error} />}
      <div className="field">
        <label className="label" htmlFor={`${id}-note`}>
          Note
        </label>
        <textarea
          id={`${id}-note`}
          className="input"
          rows={6}
          maxLength={10_000}
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
      </div>
      <div className="field">
        <label className="label" htmlFor={`${id}-tags`}>
          Tags, one name:value per line
        </label>
        <textarea
          id={`${id}-tags`}
          className="input mono"
          rows={4}
          value={lines}
          aria-invalid={typeof tags === 'string' || undefined}
          aria-describedby={typeof tags === 'string' ? `${id}-wrong` : undefined}
          onChange={(e) => setLines(e.target.value)}
        />
        {typeof tags === 'string' && (
          <span id={`${id}-wrong`} className="problem" role="alert">
            {tags}
          </span>
        )}
      </div>
      <div className="actions">
        <button type="button" className="btn" onClick={props.onClose}>
          Cancel
        </button>
        <button type="submit" className="btn primary" disabled={busy || typeof tags === 'string'}>
          Save
        </button>
      </div>
    </form>
  );
}
