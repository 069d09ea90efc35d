import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api } from '../api/client';
import type { RunDetail, RunNote } from '../api/types';
import { Writes } from '../app/Writes';
import { Dialog } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Failed, ProblemNotice, SkeletonRows } from '../design/States';
import { tagLines, tagsOf } from './tagLines';

const useNote = (id: string) =>
  useQuery({
    queryKey: ['note', id],
    queryFn: ({ signal }) => api.get('/api/runs/{id}/note', { path: { id }, signal, asStored: true }),
  });

/** What was written about a run; nothing where nothing was. */
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
        <Writes>
          <button type="button" className="btn quiet small" onClick={onEdit}>
            <Icon name="edit" size={14} /> Edit
          </button>
        </Writes>
      </div>
    </section>
  );
}

/** Edits the note and the tags of a run. */
export function NoteDialog({ run, onClose }: { run: RunDetail; onClose: () => void }) {
  const note = useNote(run.run_id);
  return (
    <Dialog title={`Note and tags of “${run.test_name}”`} wide onClose={onClose}>
      {note.data ? (
        <NoteForm run={run} note={note.data} onClose={onClose} />
      ) : note.error ? (
        <Failed what="The note could not be read." error={note.error} retry={() => note.refetch()} />
      ) : (
        <SkeletonRows rows={3} />
      )}
    </Dialog>
  );
}

function NoteForm({ run, note, onClose }: { run: RunDetail; note: RunNote; onClose: () => void }) {
  const [text, setText] = useState(note.text);
  const [lines, setLines] = useState(() => tagLines(run.scenario_config.tags));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const qc = useQueryClient();
  const id = useId();
  const tags = tagsOf(lines);
  const save = async () => {
    if (typeof tags === 'string') return;
    setBusy(true);
    setError(null);
    const path = { id: run.run_id };
    try {
      if (text !== note.text)
        qc.setQueryData(
          ['note', run.run_id],
          await api.put('/api/runs/{id}/note', { path, body: { text, version: note.version } }),
        );
      if (tagLines(tags) !== tagLines(run.scenario_config.tags)) {
        await api.put('/api/runs/{id}/tags', { path, body: { tags } });
        await qc.invalidateQueries({ queryKey: ['run', run.run_id] });
        void qc.invalidateQueries({ queryKey: ['runs'] });
      }
      onClose();
    } catch (e) {
      setError(e);
      setBusy(false);
      // What somebody else has written meanwhile is there to be looked at; what was typed stays.
      void qc.invalidateQueries({ queryKey: ['note', run.run_id] });
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
          Tags, one a line as name:value
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
        <button type="button" className="btn" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="btn primary" disabled={busy || typeof tags === 'string'}>
          Save
        </button>
      </div>
    </form>
  );
}
