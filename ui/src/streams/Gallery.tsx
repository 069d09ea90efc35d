import { gallery } from './gallery';

/** Gallery offers example queries, which open in the editor. */
export function Gallery({ onPick }: { onPick: (text: string) => void }) {
  return (
    <section className="panel gallery" aria-label="Examples">
      <header>
        <h2>Examples</h2>
      </header>
      <ul>
        {gallery.map((g) => (
          <li key={g.id}>
            <button type="button" onClick={() => onPick(g.text)}>
              <strong>{g.title}</strong>
              <span className="muted">{g.what}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
