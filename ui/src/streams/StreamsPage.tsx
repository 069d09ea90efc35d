import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo, useRef, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api, asProblem } from '../api/client';
import { useHasRole } from '../api/queries';
import type { FieldError, StatementResult } from '../api/types';
import { usePageTitle } from '../app/location';
import { useConfirm } from '../design/Dialog';
import { Icon } from '../design/icons';
import { Load, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Editor } from '../editor/Editor';
import { Alerts } from './Alerts';
import { Catalog } from './Catalog';
import { Gallery } from './Gallery';
import { streamLanguage } from './language';
import { explainRequest, shiftErrors, statementsOf, summary } from './model';
import { Queries } from './Queries';
import { QueryPanel } from './QueryPanel';
import { StatementOutcome } from './StatementOutcome';
import './streams.css';
import { problemText } from '../design/sentences';

const key = ['streams'];
const path = '/api/v1/streams/statements';

export interface Outcome {
  sql: string;
  results?: StatementResult[];
  errors?: FieldError[];
  /** A problem that is not in the text. */
  problem?: string;
}

/** execute runs statements written by the page. */
export async function execute(sql: string): Promise<StatementResult[]> {
  return (await api.post(path, { body: { sql } })).results;
}

/** StreamsPage is /streams: catalog, editor and running queries. */
export function StreamsPage() {
  usePageTitle('Streams');
  const [, navigate] = useLocation();
  const params = new URLSearchParams(useSearch());
  const may = useHasRole('operator');
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const [text, setText] = useState('');
  const [busy, setBusy] = useState<'run' | 'explain' | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const list = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => api.get('/api/v1/streams', { signal }),
    refetchInterval: 1_000,
  });
  const previous = useRef(list.data);
  previous.current = list.data;
  const language = useMemo(() => streamLanguage(() => previous.current), []);
  const changed = () => qc.invalidateQueries({ queryKey: key });

  const send = async (what: 'run' | 'explain') => {
    if (busy || !text.trim() || !may) return;
    const request =
      what === 'run'
        ? { sql: text, line: 0, shift: 0 }
        : explainRequest(
            text,
            (list.data?.sinks ?? []).map((s) => s.name),
          );
    if (!request) {
      setOutcome({ sql: text, problem: 'No query to explain. Write a SELECT … FROM a source.' });
      return;
    }
    setBusy(what);
    try {
      setOutcome({ sql: text, results: await execute(request.sql) });
      await changed();
    } catch (err) {
      const p = asProblem(err);
      const errors = shiftErrors(
        p.fields.filter((f) => f.field === 'sql'),
        request,
      );
      const kind = /^\w+: /.exec(p.message)?.[0] ?? '';
      if (errors.length > 0)
        setOutcome({ sql: text, errors: errors.map((e) => ({ ...e, message: kind + e.message })) });
      else setOutcome({ sql: text, problem: problemText(p) });
    }
    setBusy(null);
  };

  const show = (name: string) => navigate(name ? `/streams?query=${encodeURIComponent(name)}` : '/streams');
  const fill = (begin: string) => {
    setText((t) => (t.trim() ? `${t.replace(/;?\s*$/, ';')}\n\n${begin}` : begin));
    setOutcome(null);
    document.querySelector<HTMLElement>('.streams-editor textarea')?.focus();
  };
  const many = statementsOf(text).length;
  const wrong = outcome && outcome.sql === text ? outcome.errors : undefined;

  return (
    <>
      <header className="page-head">
        <h1>Streams</h1>
        <span className="sub hide-phone" role="status">
          {list.data ? summary(list.data) : 'Queries that run continuously over incoming rows.'}
        </span>
        {may && (
          <div className="actions">
            <button
              type="button"
              className="btn"
              disabled={!text.trim() || busy !== null}
              onClick={() => void send('explain')}
            >
              <Icon name="chart" /> Explain
            </button>
            <button
              type="button"
              className="btn primary"
              title="Ctrl+Enter"
              disabled={!text.trim() || busy !== null}
              onClick={() => void send('run')}
            >
              <Icon name="play" /> Run
            </button>
          </div>
        )}
      </header>
      <div className="page">
        {list.data && list.error && <Notice tone="warn">The server does not answer; it keeps trying.</Notice>}
        {may ? (
          <div className="streams-top">
            <div className="stack streams-editor">
              <Editor
                label="Statements"
                value={text}
                onChange={setText}
                language={language}
                errors={wrong}
                onRun={() => void send('run')}
              />
              <p className="note muted">
                {many > 1 ? `${many} statements, executed together: all or none. ` : ''}
                <span className="hide-phone">Ctrl+Enter runs, Ctrl+Space completes.</span>
              </p>
              <StatementOutcome outcome={outcome} busy={busy} stale={outcome !== null && outcome.sql !== text} />
            </div>
            <Gallery onPick={fill} />
          </div>
        ) : (
          <Notice>Read-only. Creating and stopping queries requires the role operator.</Notice>
        )}
        <Load
          from={list}
          what="The catalog of streams could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={6} />
            </div>
          }
        >
          {(c) => {
            const chosen = params.get('query');
            const current = c.queries.find((q) => q.name === chosen);
            return (
              <>
                <Queries
                  catalog={c}
                  current={current?.name}
                  onShow={show}
                  ask={ask}
                  changed={changed}
                  notify={(m) => toast(m, 'ok')}
                />
                {current && <QueryPanel key={current.query_id} query={current} catalog={c} onClose={() => show('')} />}
                {chosen && !current && (
                  <Notice>There is no query {chosen} any more: it was dropped, and has stopped.</Notice>
                )}
                <Alerts alerts={c.alerts} />
                <Catalog catalog={c} ask={ask} changed={changed} notify={(m) => toast(m, 'ok')} />
              </>
            );
          }}
        </Load>
      </div>
      {dialog}
    </>
  );
}
