import { Link } from 'wouter';
import { usePageTitle } from '../app/location';
import { Icon } from '../design/icons';
import { questions } from './gallery';
import './start.css';

/** GalleryPage lists templates by the question they answer. */
export function GalleryPage() {
  usePageTitle('Templates by question');
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
        <ul className="questions">
          {questions.map((q) => (
            <li key={q.id}>
              <Link href={`/templates/new?example=${q.id}`} className="panel question" data-row>
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
