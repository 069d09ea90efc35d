import { type DragEvent, type ReactNode, useRef, useState } from 'react';
import { asProblem, type Problem, sendPlugin } from '../api/client';
import type { Plugin } from '../api/types';
import { bytes, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Notice } from '../design/States';
import { asSentence } from '../design/sentences';

/** maxBytes is the server's limit; larger files are not sent. */
const maxBytes = 8 << 20;

type State =
  | { at: 'idle' }
  | { at: 'sending'; name: string; size: number; sent: number }
  | { at: 'refused'; name: string; problem: Problem }
  | { at: 'stored'; plugin: Plugin };

export interface Upload {
  state: State;
  send: (file: File) => void;
  cancel: () => void;
  dismiss: () => void;
}

/** useUpload manages one upload at a time. */
export function useUpload(stored: (p: Plugin) => void): Upload {
  const [state, setState] = useState<State>({ at: 'idle' });
  const abort = useRef<AbortController | null>(null);
  const send = async (file: File) => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { name, size } = file;
    try {
      if (size > maxBytes)
        return setState({
          at: 'refused',
          name,
          problem: asProblem(new Error(`The file has ${plain(bytes(size))}. A plugin may have at most 8 MB.`)),
        });
      setState({ at: 'sending', name, size, sent: 0 });
      const plugin = await sendPlugin(
        file,
        (sent) => abort.current === controller && setState({ at: 'sending', name, size, sent }),
        controller.signal,
      );
      setState({ at: 'stored', plugin });
      stored(plugin);
    } catch (err) {
      const problem = asProblem(err);
      if (abort.current !== controller) return;
      setState(problem.code === 'aborted' ? { at: 'idle' } : { at: 'refused', name, problem });
    }
  };
  return {
    state,
    send: (file) => void send(file),
    cancel: () => abort.current?.abort(),
    dismiss: () => setState({ at: 'idle' }),
  };
}

/** UploadZone accepts a dropped or chosen file. */
export function UploadZone({ upload, children }: { upload: Upload; children: ReactNode }) {
  const [over, setOver] = useState(false);
  const holdsFile = (e: DragEvent) => [...e.dataTransfer.types].includes('Files');
  return (
    <div
      className="page stack"
      onDragOver={(e) => {
        if (!holdsFile(e)) return;
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) setOver(false);
      }}
      onDrop={(e) => {
        if (!holdsFile(e)) return;
        e.preventDefault();
        setOver(false);
        const file = e.dataTransfer.files[0];
        if (file) upload.send(file);
      }}
    >
      <section className={`dropzone${over ? ' over' : ''}`} aria-label="Upload a plugin">
        <UploadStatus upload={upload} over={over} />
      </section>
      {children}
    </div>
  );
}

function UploadStatus({ upload, over }: { upload: Upload; over: boolean }) {
  const { state } = upload;
  if (state.at === 'sending') return <UploadProgress state={state} cancel={upload.cancel} />;
  return (
    <>
      {state.at === 'refused' && (
        <Notice tone="bad">
          <strong>{state.name} was refused.</strong>
          <p className="verdict-sentence">{state.problem.message}</p>
          {state.problem.hint && <p className="muted">{asSentence(state.problem.hint)}</p>}
        </Notice>
      )}
      {state.at === 'stored' && state.plugin.state === 'disabled' && (
        <Notice tone="ok">
          <strong>
            {state.plugin.name} {state.plugin.version} passed quarantine and is stored, disabled.
          </strong>{' '}
          Look below at what it declares; an admin then enables it.
        </Notice>
      )}
      {state.at === 'stored' && state.plugin.state === 'enabled' && (
        <Notice>
          <strong>
            {state.plugin.name} {state.plugin.version} is already installed.
          </strong>{' '}
          The file has the same bytes; nothing has changed.
        </Notice>
      )}
      <div className="row dropzone-line">
        <Icon name="upload" size={20} />
        <span className="grow">
          <strong>{over ? 'Release to upload' : 'Drop a plugin here'}</strong>
          <span className="muted">
            {' '}
            A WebAssembly file (.wasm) of at most 8 MB. Loadstone tests it in quarantine and stores it disabled.
          </span>
        </span>
        {state.at !== 'idle' && (
          <button type="button" className="btn quiet" onClick={upload.dismiss}>
            Dismiss
          </button>
        )}
        <ChooseFile upload={upload} />
      </div>
    </>
  );
}

function ChooseFile({ upload }: { upload: Upload }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" className="btn primary" onClick={() => input.current?.click()}>
        Choose file
      </button>
      <input
        ref={input}
        type="file"
        accept=".wasm,application/wasm"
        hidden
        aria-label="Plugin file"
        onChange={(e) => {
          const file = e.target.files?.[0];
          // Reset, so that the same file can be chosen again.
          e.target.value = '';
          if (file) upload.send(file);
        }}
      />
    </>
  );
}

function UploadProgress({ state, cancel }: { state: Extract<State, { at: 'sending' }>; cancel: () => void }) {
  const share = state.size > 0 ? Math.min(1, state.sent / state.size) : 0;
  const arrived = share >= 1;
  return (
    <div className="stack tightly" aria-live="polite">
      <div className="row">
        <strong className="grow">
          {arrived ? `Examining ${state.name} in quarantine` : `Uploading ${state.name}`}
        </strong>
        <button type="button" className="btn" onClick={cancel}>
          Cancel
        </button>
      </div>
      <div
        className="progress"
        role="progressbar"
        aria-label={`Upload of ${state.name}`}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <i style={{ width: `${(share * 100).toFixed(1)}%` }} />
      </div>
      <span className="muted">
        {arrived
          ? 'Loadstone compiles and tests the plugin in a separate process. This takes a few seconds.'
          : `${plain(bytes(state.sent))} of ${plain(bytes(state.size))}`}
      </span>
    </div>
  );
}
