import { type FormEvent, useEffect, useState } from 'react';
import { onProductionConfirm } from '../api/client';
import { Dialog } from '../design/Dialog';

interface PendingPrompt {
  names: string[];
  answer: (confirmed: boolean) => void;
}

/** ProductionPrompt asks for the names of production connections before they are loaded, for every start button. */
export function ProductionPrompt() {
  const [pending, setPending] = useState<PendingPrompt | null>(null);
  useEffect(() => {
    onProductionConfirm((names) => new Promise((answer) => setPending({ names, answer })));
  }, []);
  if (!pending) return null;
  const end = (confirmed: boolean) => {
    pending.answer(confirmed);
    setPending(null);
  };
  return <ConfirmNames names={pending.names} end={end} />;
}

function ConfirmNames({ names, end }: { names: string[]; end: (confirmed: boolean) => void }) {
  const [typed, setTyped] = useState<Record<string, string>>({});
  const right = names.every((n) => typed[n]?.trim() === n.trim());
  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (right) end(true);
  };
  return (
    <Dialog title="Run against production?" onClose={() => end(false)}>
      <form className="stack" onSubmit={submit}>
        <p className="muted">
          {names.length === 1
            ? 'This run puts load on a production database.'
            : 'These runs put load on production databases.'}{' '}
          Type the name of {names.length === 1 ? 'its connection' : 'each connection'} to continue.
        </p>
        {names.map((n, i) => (
          <div className="field" key={n}>
            <label className="label" htmlFor={`production-${i}`}>
              <span className="wrap-anywhere">{n}</span>
            </label>
            <input
              id={`production-${i}`}
              className="input"
              value={typed[n] ?? ''}
              onChange={(e) => setTyped({ ...typed, [n]: e.target.value })}
              autoFocus={i === 0}
              autoComplete="off"
              spellCheck={false}
            />
          </div>
        ))}
        <div className="actions">
          <button type="button" className="btn" onClick={() => end(false)}>
            Cancel
          </button>
          <button type="submit" className="btn danger solid" disabled={!right}>
            Load production
          </button>
        </div>
      </form>
    </Dialog>
  );
}
