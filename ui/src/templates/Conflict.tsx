import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { Template } from '../api/types';
import { ago } from '../design/format';
import { Icon } from '../design/icons';
import { VisibleText } from '../editor/VisibleText';
import { Failed, SkeletonRows } from '../design/States';
import { OperatorOnly } from '../app/OperatorOnly';
import { diffLines, hunks } from './diff';
import { type Draft, draftBody } from './draft';

/** canonicalText formats a document on the server, so that a diff shows content and not style. */
async function canonicalText(config: Draft['config']): Promise<string> {
  const v = await api.post('/api/templates/validate', { body: { config }, asStored: true });
  return v.source;
}

async function loadBoth(id: string, draft: Draft): Promise<{ theirs: Template; lines: ReturnType<typeof hunks> }> {
  const theirs = await api.get('/api/templates/{id}', { path: { id }, asStored: true });
  const asText = 'source' in draftBody(draft);
  const [a, b] = asText
    ? [theirs.source ?? '', draft.source]
    : await Promise.all([canonicalText(theirs.config), canonicalText(draft.config)]);
  return { theirs, lines: hunks(diffLines(a, b)) };
}

/** Conflict shows a template that another user saved meanwhile, with a diff and choices. */
export function Conflict(props: {
  id: string;
  draft: Draft;
  /** Saves the draft over this version. */
  onMine: (version: number) => void;
  onTheirs: (theirs: Template) => void;
  /** Saves the draft as a new template. */
  onCopy: () => void;
  busy: boolean;
}) {
  const { id, draft } = props;
  const found = useQuery({ queryKey: ['conflict', id, draft], gcTime: 0, queryFn: () => loadBoth(id, draft) });
  if (found.error)
    return <Failed what="The saved version could not be read." error={found.error} retry={found.refetch} />;
  if (!found.data) return <SkeletonRows rows={4} />;
  const { theirs, lines } = found.data;
  const differs = lines.some((l) => l.kind === 'theirs' || l.kind === 'mine');
  return (
    <section className="panel stack conflict" aria-labelledby="conflict-title">
      <div>
        <h2 id="conflict-title">Another user saved this template while you edited it</h2>
        <p className="muted">
          Version {theirs.version}
          {theirs.updated_at ? `, ${ago(theirs.updated_at)}` : ''}. Your changes are not lost. Choose which version to
          keep.
        </p>
      </div>
      {differs ? (
        <pre className="diff" tabIndex={0} aria-label="Differences between the saved version and yours">
          {lines.map((l, i) =>
            l.kind === 'gap' ? (
              <div key={i} className="gap">
                {l.lines} {l.lines === 1 ? 'line' : 'lines'} the same
              </div>
            ) : (
              <div key={i} className={l.kind}>
                <span className="sr">{l.kind === 'theirs' ? 'saved: ' : l.kind === 'mine' ? 'yours: ' : ''}</span>
                <span aria-hidden="true">{l.kind === 'theirs' ? '− ' : l.kind === 'mine' ? '+ ' : '  '}</span>
                {l.text ? <VisibleText text={l.text} /> : ' '}
              </div>
            ),
          )}
        </pre>
      ) : (
        <p>Both versions are equal.</p>
      )}
      <div className="row">
        <OperatorOnly>
          {differs && (
            <button type="button" className="btn" disabled={props.busy} onClick={() => props.onMine(theirs.version)}>
              Overwrite with mine
            </button>
          )}
        </OperatorOnly>
        <button type="button" className="btn" disabled={props.busy} onClick={() => props.onTheirs(theirs)}>
          Use the saved version
        </button>
        <OperatorOnly>
          {differs && (
            <button type="button" className="btn" disabled={props.busy} onClick={props.onCopy}>
              <Icon name="copy" size={14} /> Save mine as a new template
            </button>
          )}
        </OperatorOnly>
        {differs && <span className="muted note">− marks lines of the saved version, + marks yours.</span>}
      </div>
    </section>
  );
}
