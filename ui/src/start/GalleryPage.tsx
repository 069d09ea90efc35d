import { Link } from 'wouter';
import { useMe, useRun, useRuns } from '../api/queries';
import { usePageTitle, useParam } from '../app/location';
import { Icon } from '../design/icons';
import { questions } from './gallery';
import { usedTarget } from './retarget';
import './start.css';

/** useLatestTarget is the run whose target the questions take over: the one of the address, else the user's newest. */
function useLatestTarget(chosen: string) {
  const me = useMe().data?.name;
  const newest = useRuns({ limit: 20 });
  const own = newest.data?.runs?.find((r) => r.created_by === me && usedTarget(r))?.run_id ?? '';
  const id = chosen === 'none' ? '' : chosen || own;
  const run = useRun(id, true, id !== '').data;
  return id && run ? { run: id, target: usedTarget(run) } : null;
}

/** GalleryPage lists templates by the question they answer. */
export function GalleryPage() {
  usePageTitle('Templates by question');
  const [chosen, setChosen] = useParam('like', '');
  const latest = useLatestTarget(chosen);
  const target = latest?.target ?? null;
  return (
    <>
      <header className="page-head">
        <Link href="/templates" className="back" aria-label="Back to templates" title="Back to templates">
          <Icon name="back" size={18} />
        </Link>
        <h1>What do you want to know?</h1>
        <div className="actions">
          <Link href="/start" className="btn">
            First steps, guided
          </Link>
          <Link href="/templates/new" className="btn">
            Empty template
          </Link>
        </div>
      </header>
      <div className="page">
        {target && (
          <p className="row muted" role="status">
            <span className="wrap-anywhere">
              The templates use your last target: connection <strong>{target.connection}</strong>
              {target.table && (
                <>
                  , table <strong>{target.table}</strong>
                </>
              )}
              .
            </span>
            <button type="button" className="btn small" onClick={() => setChosen('none')}>
              Use the built-in examples
            </button>
          </p>
        )}
        <ul className="questions">
          {questions.map((q) => (
            <li key={q.id}>
              <Link
                href={`/templates/new?example=${q.id}${target ? `&like=${latest!.run}` : ''}`}
                className="panel question"
                data-row
              >
                <strong>{q.question}</strong>
                <span className="muted">{q.answer}</span>
              </Link>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}
