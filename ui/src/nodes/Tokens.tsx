import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api } from '../api/client';
import type { NodeToken } from '../api/types';
import { CardTable } from '../design/CardTable';
import { Dialog, type Question } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { ShownOnce } from '../design/ShownOnce';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';
import { joinCommand } from './Join';
import { expires, usesLeft } from './model';

/** Tokens lists valid join tokens: creator, uses left and expiry. */
export function Tokens({ now, ask }: { now: number; ask: (q: Question) => void }) {
  const qc = useQueryClient();
  const [making, setMaking] = useState(false);
  const tokens = useQuery({
    queryKey: ['node-tokens'],
    queryFn: ({ signal }) => api.get('/api/v1/node-tokens', { signal }).then((r) => r.tokens),
    refetchInterval: 5_000,
  });
  const changed = () => qc.invalidateQueries({ queryKey: ['node-tokens'] });
  const end = (t: NodeToken) =>
    ask({
      title: 'End this token?',
      body: 'No further node can join with this token. Nodes that already joined stay.',
      verb: 'End token',
      danger: true,
      act: async () => {
        await api.remove('/api/v1/node-tokens/{id}', { path: { id: t.token_id } });
        await changed();
      },
    });
  return (
    <section className="panel" aria-label="Join tokens">
      <header>
        <h2 className="h3">Join tokens</h2>
        <div className="end">
          <button type="button" className="btn small" onClick={() => setMaking(true)}>
            <Icon name="plus" size={14} /> New token
          </button>
        </div>
      </header>
      <Load
        from={tokens}
        what="The tokens could not be read."
        skeleton={<SkeletonRows rows={2} />}
        empty={(list) =>
          list.length === 0 && (
            <Empty tight title="No join tokens">
              A join token admits one or more new nodes until it expires. Nodes that already joined need no token.
            </Empty>
          )
        }
      >
        {(list) => (
          <CardTable
            label="Tokens"
            dense
            rows={list}
            id={(t) => t.token_id}
            columns={[
              {
                head: 'Created',
                cell: (t) => (
                  <>
                    {ago(t.created_at, now)}
                    <span className="second">by {t.created_by || 'unknown'}</span>
                  </>
                ),
                title: (t) => dateTime(t.created_at),
              },
              { head: 'Nodes', cell: usesLeft, phone: 'alone' },
              { head: 'Expires', cell: (t) => expires(t.expires_at, now), title: (t) => dateTime(t.expires_at) },
            ]}
            acts={(t) => (
              <button
                type="button"
                className="btn danger small"
                onClick={() => end(t)}
                aria-label={`End the token created by ${t.created_by} ${ago(t.created_at, now)}`}
              >
                End
              </button>
            )}
          />
        )}
      </Load>
      {making && <NewNodeToken onClose={() => setMaking(false)} made={changed} />}
    </section>
  );
}

function NewNodeToken({ onClose, made }: { onClose: () => void; made: () => unknown }) {
  const [uses, setUses] = useState('1');
  const [valid, setValid] = useState('3600');
  const create = useMutation({
    mutationFn: () => api.post('/api/v1/node-tokens', { body: { uses: Number(uses), valid_seconds: Number(valid) } }),
    onSuccess: made,
  });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    create.mutate();
  };
  if (create.data) {
    return (
      <ShownOnce
        title="Join token"
        wide
        text={joinCommand(create.data.secret)}
        copy="Copy the join command"
        onClose={onClose}
      >
        <p>
          Run this on the new machine, with an address that the server can reach. Then connect the server to it:{' '}
          <code>loadstone node add HOST:9090</code>.
        </p>
      </ShownOnce>
    );
  }
  return (
    <Dialog title="New join token" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {create.error && <ProblemNotice error={create.error} />}
        <div className="field">
          <label className="label" htmlFor="node-token-uses">
            Nodes
          </label>
          <input
            id="node-token-uses"
            className="input"
            type="number"
            inputMode="numeric"
            min={1}
            max={1000}
            step={1}
            required
            value={uses}
            onChange={(e) => setUses(e.target.value)}
          />
          <span className="help">
            How many machines may join with it. One that starts again on its data directory needs no token; tasks and
            Pods without a persistent disk use one at each start.
          </span>
        </div>
        <div className="field">
          <label className="label" htmlFor="node-token-valid">
            Valid for
          </label>
          <select id="node-token-valid" className="input" value={valid} onChange={(e) => setValid(e.target.value)}>
            <option value="3600">1 hour</option>
            <option value="86400">1 day</option>
            <option value="604800">7 days</option>
            <option value="2592000">30 days</option>
          </select>
        </div>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={create.isPending}>
            Make token
          </button>
        </div>
      </form>
    </Dialog>
  );
}
