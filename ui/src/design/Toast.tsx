import { createContext, type ReactNode, useCallback, useContext, useRef, useState } from 'react';
import { Icon } from './icons';
import type { Tone } from './States';

type Show = (message: string, tone?: Tone) => void;
const ToastContext = createContext<Show>(() => {});

export const useToast = (): Show => useContext(ToastContext);

interface Toast {
  id: number;
  message: string;
  tone: Tone;
}

const icons: Record<Tone, string> = { ok: 'check', warn: 'warn', bad: 'alert', plain: 'info' };

/** Toasts are short notes, announced to screen readers. Errors stay until they are closed. */
export function Toasts({ children }: { children: ReactNode }) {
  const [list, setList] = useState<Toast[]>([]);
  const next = useRef(1);
  const close = useCallback((id: number) => setList((l) => l.filter((t) => t.id !== id)), []);
  const show = useCallback<Show>(
    (message, tone = 'plain') => {
      const id = next.current++;
      setList((l) => [...l.filter((t) => t.message !== message).slice(-3), { id, message, tone }]);
      if (tone !== 'bad') setTimeout(() => close(id), tone === 'warn' ? 10_000 : 4_000);
    },
    [close],
  );
  return (
    <ToastContext.Provider value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {list.map((t) => (
          <div key={t.id} className={`toast ${t.tone}`}>
            <Icon name={icons[t.tone]} />
            <div>{t.message}</div>
            <button type="button" className="btn quiet small icon" aria-label="Dismiss" onClick={() => close(t.id)}>
              <Icon name="close" size={14} />
            </button>
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  );
}
