import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useHasRole, useMe } from '../api/queries';
import type { PriceList as Prices } from '../api/types';
import type { Question } from '../design/Dialog';
import { ago } from '../design/format';
import { Load, Notice, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { pricesByType, priceSource } from './pricing';

// Lazy: few users edit prices.
const YamlEditor = lazy(() => import('../templates/YamlEditor').then((m) => ({ default: m.YamlEditor })));

/** PriceList shows the prices used for costs; admins change it for all servers. */
export function PriceList({ ask }: { ask: (q: Question) => void }) {
  const known = useMe().data !== undefined;
  const admin = useHasRole('admin') && known;
  const [editing, setEditing] = useState(false);
  const list = useQuery({
    queryKey: ['prices'],
    enabled: known,
    queryFn: ({ signal }) => api.get('/api/v1/prices', { signal }),
  });
  return (
    <section className="panel" aria-label="Price list">
      <header>
        <h2>Price list</h2>
        <span className="end">
          {admin && list.data && !editing && list.data.from !== 'flag' && (
            <button type="button" className="btn small" onClick={() => setEditing(true)}>
              Edit
            </button>
          )}
        </span>
      </header>
      <Load from={list} what="The price list could not be read." skeleton={<SkeletonRows rows={3} />}>
        {(p) =>
          editing ? (
            <Form key={p.version} list={p} ask={ask} close={() => setEditing(false)} />
          ) : (
            <div className="body stack">
              {p.problem && <Notice tone="bad">What was saved is not used: {p.problem}</Notice>}
              <p>
                A credit costs{' '}
                <strong>
                  {p.credit_price} {p.currency}
                </strong>
                . <span className="muted">{priceSource(p)}</span>
                {p.from === 'saved' && p.updated_at && (
                  <span className="muted">
                    {' '}
                    by {p.updated_by}, {ago(p.updated_at)}.
                  </span>
                )}
              </p>
              <dl className="prices">
                {pricesByType(p).map(([type, sizes]) => (
                  <div key={type}>
                    <dt>{type}</dt>
                    <dd>
                      {sizes.map((s) => (
                        <span key={s.warehouse_size} className="price">
                          <span className="muted">{s.warehouse_size}</span> {s.credits_per_hour}
                        </span>
                      ))}
                    </dd>
                  </div>
                ))}
              </dl>
              <p className="help">Credits per hour of one cluster. The page of a run shows its cost by this list.</p>
            </div>
          )
        }
      </Load>
    </section>
  );
}

function Form({ list, ask, close }: { list: Prices; ask: (q: Question) => void; close: () => void }) {
  const qc = useQueryClient();
  const toast = useToast();
  const [text, setText] = useState(list.text);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const save = async (to: string, message: string) => {
    setBusy(true);
    setError(null);
    try {
      qc.setQueryData(['prices'], await api.put('/api/v1/prices', { body: { text: to, version: list.version } }));
      toast(message, 'ok');
      close();
    } catch (err) {
      setError(err);
      throw err;
    } finally {
      setBusy(false);
    }
  };
  const wrong = error === null ? [] : asProblem(error).fields.filter((f) => f.line !== undefined);
  return (
    <div className="body stack">
      {error !== null && wrong.length === 0 && <ProblemNotice error={error} />}
      <Suspense fallback={<SkeletonRows rows={8} />}>
        <YamlEditor value={text} onChange={setText} errors={wrong} what="Price list" />
      </Suspense>
      <div className="row">
        <button
          type="button"
          className="btn primary"
          disabled={busy || text === list.text}
          onClick={() => void save(text, 'The price list was saved.').catch(() => {})}
        >
          Save
        </button>
        <button type="button" className="btn" onClick={close}>
          Cancel
        </button>
        {list.from === 'saved' && (
          <button
            type="button"
            className="btn"
            onClick={() =>
              ask({
                title: 'Remove the saved price list?',
                body: 'Costs will use prices.yaml of the data directory, or else the built-in list.',
                verb: 'Remove price list',
                danger: true,
                act: () => save('', 'Price list removed.'),
              })
            }
          >
            Remove this list
          </button>
        )}
      </div>
    </div>
  );
}
