import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { asProblem } from '../api/client';
import { Notice } from './States';
import { problemText } from './sentences';

/** Dialog uses the browser's <dialog>: focus stays inside, Escape closes, focus returns afterwards. */
export function Dialog(props: { title: string; wide?: boolean; onClose: () => void; children: ReactNode }) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const d = ref.current;
    const before = document.activeElement;
    if (d && !d.open) d.showModal();
    return () => {
      d?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog${props.wide ? ' wide' : ''}`}
      aria-labelledby={titleId}
      onCancel={(e) => {
        e.preventDefault();
        props.onClose();
      }}
      onPointerDown={(e) => {
        if (e.target === e.currentTarget) props.onClose();
      }}
    >
      <div className="in">
        <h2 id={titleId}>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

export interface Question {
  title: string;
  body: ReactNode;
  verb: string;
  danger?: boolean;
  /** Label of the cancel button. */
  keep?: string;
  act: () => unknown;
}

/** Confirm asks for confirmation, and shows the error when the action fails. */
function Confirm({ question, onClose }: { question: Question; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const act = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await question.act();
      onClose();
    } catch (err) {
      const p = asProblem(err);
      setProblem(problemText(p));
      setBusy(false);
    }
  };
  return (
    <Dialog title={question.title} onClose={onClose}>
      <div className="muted">{question.body}</div>
      {problem && <Notice tone="bad">{problem}</Notice>}
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          {question.keep ?? 'Keep'}
        </button>
        <button
          type="button"
          className={`btn ${question.danger === false ? 'primary' : 'danger solid'}`}
          disabled={busy}
          autoFocus
          onClick={() => void act()}
        >
          {busy ? 'Working…' : question.verb}
        </button>
      </div>
    </Dialog>
  );
}

/** useConfirm returns the open confirmation, and a function that opens one. */
export function useConfirm(): [ReactNode, (q: Question) => void] {
  const [question, ask] = useState<Question | null>(null);
  return [question ? <Confirm key={question.title} question={question} onClose={() => ask(null)} /> : null, ask];
}
