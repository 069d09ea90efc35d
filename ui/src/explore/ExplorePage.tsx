import { useEffect, useMemo, useRef, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { usePageTitle } from '../app/location';
import type { Zoom } from '../charts/group';
import { Segments } from '../design/Controls';
import { dateTime, duration } from '../design/format';
import { Icon } from '../design/icons';
import { useRuns } from '../api/queries';
import { isLive } from '../api/types';
import { phases } from '../runs/series';
import { Empty, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Editor, type Language } from '../editor/Editor';
import { useSavedQueries } from '../tables/queries';
import { choicesOf, exploreChart, MissingQuery, SavedQueries } from '../tables/SavedQueries';
import '../tables/tables.css';
import {
  type ExploreQuery,
  fitsLink,
  fromAddress,
  type Over,
  rangeOf,
  spans,
  toAddress,
  viewParams,
  zoomOf,
} from './address';
import { namesInRange } from './promqlClient';
import { exampleQuery as askedOf, examples } from './examples';
import './explore.css';
import { MetricPicker } from './MetricPicker';
import { coloursByRun, plotResults } from './model';
import { colourPromql, promqlCompletions } from './promql';
import { RunBar, runNames, usePickedRuns } from './RunBar';
import { QueryResult } from './QueryResult';
import { clockTime, loadTime, queryParts } from './times';
import { useExploreResult } from './useExploreResult';
import { asSentence } from '../design/sentences';

const overOptions: { value: Over; label: string }[] = [
  { value: 'time', label: 'Clock time' },
  { value: 'runs', label: 'Since each run’s start' },
];

const steps = [0, 1, 2, 5, 10, 30, 60, 300, 3600];
const pauses = [0, 2, 5, 10, 60];
/** followInterval is how often a live run is queried, in seconds. */
const followInterval = 2;

const normal = (search: string) => new URLSearchParams(search).toString();

/** ExplorePage is /explore: PromQL over run telemetry. */
export function ExplorePage() {
  usePageTitle('Explore');
  const [, navigate] = useLocation();
  const search = useSearch();
  const toast = useToast();
  const [a, setA] = useState(() => fromAddress(search));
  const [began] = useState(a.q);
  const { outcome, progress, run: answer, cancel } = useExploreResult();
  const drawn = useMemo(() => outcome && plotResults(outcome.answers, outcome.step), [outcome]);
  const ids = useMemo(() => [...a.runs, ...a.base], [a.runs, a.base]);
  const picked = usePickedRuns(ids);
  const [name, setName] = useState(() => new URLSearchParams(search).get('saved') ?? '');
  const saved = useSavedQueries();
  const now = useRef(a);
  now.current = a;
  const lastQuery = useRef<ExploreQuery | null>(null);
  /** The address this page has written; any other is a link. */
  const shownSearch = useRef(normal(search));

  // Without a query in the address the page opens on the time of the newest run.
  const [bare] = useState(() => normal(search) === '');
  const newest = useRuns({ limit: 10 }, undefined, bare);
  const newestRun = newest.data?.runs?.find((r) => r.start_time)?.run_id;
  useEffect(() => {
    if (newestRun && now.current === a && a.q === '' && a.over === 'time' && bare && !choseTime.current)
      change({ over: 'runs', runs: [newestRun] });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once, when the newest run is known
  }, [newestRun]);
  const choseTime = useRef(false);

  const change = (more: Partial<ExploreQuery>) => {
    const next = { ...now.current, ...more };
    now.current = next;
    setA(next);
    return next;
  };

  /** savedNameOf is the name of the shown saved query, while its text is unchanged. */
  const savedNameOf = (q: string) => (saved.data?.find((s) => s.name === name)?.sql === q ? name : '');

  const show = (what: ExploreQuery, savedName: string) => {
    const to = toAddress(what, savedName);
    shownSearch.current = normal(to.includes('?') ? to.slice(to.indexOf('?')) : '');
    navigate(to, { replace: true });
  };

  const send = (what: ExploreQuery) => {
    if (!what.q.trim()) return;
    const { parts, step, seconds } = queryParts(what, picked.runs, Date.now());
    if (parts.length === 0) return;
    void answer({ q: what.q, parts, step, seconds, name: runNames(picked.runs) });
  };

  /** ask runs the query and writes it to the address. */
  const ask = (more: Partial<ExploreQuery> = {}) => {
    const next = change(more);
    lastQuery.current = next;
    show(next, savedNameOf(next.q));
    send(next);
  };
  const again = useRef(ask);
  again.current = ask;

  // A link is executed once its runs are known, also when the page is open.
  const answered = useRef('');
  const opened = useRef(name);
  const [links, setLinks] = useState(0);
  useEffect(() => {
    if (normal(search) === shownSearch.current) return;
    shownSearch.current = normal(search);
    const savedName = new URLSearchParams(search).get('saved') ?? '';
    opened.current = savedName;
    setName(savedName);
    // The text of a saved query is not in the address.
    if (!savedName) setA((now.current = fromAddress(search)));
    setLinks((n) => n + 1);
  }, [search]);
  const key = `${a.over} ${ids.join()} ${links}`;
  useEffect(() => {
    if (picked.pending || answered.current === key) return;
    answered.current = key;
    again.current();
  }, [key, picked.pending]);

  // A link to a saved query loads it; the link's other parameters take precedence.
  const pendingSaved = opened.current ? saved.data?.find((s) => s.name === opened.current) : undefined;
  useEffect(() => {
    if (!pendingSaved) return;
    opened.current = '';
    const savedParams = new URLSearchParams(choicesOf(pendingSaved));
    new URLSearchParams(location.search).forEach((v, k) => k !== 'saved' && savedParams.set(k, v));
    again.current({ ...fromAddress(savedParams.toString()), q: pendingSaved.sql });
  }, [pendingSaved]);

  // Repeats the last executed query, not the edited one, and only after a response.
  const repeat = useRef(() => {});
  repeat.current = () => {
    if (!progress && lastQuery.current) send(lastQuery.current);
  };
  // A live run is followed, and queried once more when it has ended.
  const follows = a.over === 'runs' && picked.runs.some(isLive);
  const pause = follows ? followInterval : a.over === 'time' && a.last ? a.every : 0;
  useEffect(() => {
    if (!pause) return;
    const t = setInterval(() => repeat.current(), pause * 1000);
    return () => clearInterval(t);
  }, [pause]);
  const wasFollowing = useRef(false);
  useEffect(() => {
    if (wasFollowing.current && !follows) repeat.current();
    wasFollowing.current = follows;
  }, [follows]);

  const names = useMemo(
    () =>
      namesInRange(() => {
        const asking = now.current;
        if (asking.over === 'time') return clockTime(asking, Date.now());
        const times = picked.runs.flatMap((r) => loadTime(r, Date.now()) ?? []);
        return times.length
          ? { start: Math.min(...times.map((t) => t.start)), end: Math.max(...times.map((t) => t.end)) }
          : { start: Date.now() / 1000 - 7 * 86_400, end: Date.now() / 1000 };
      }),
    // Completion names are fetched again for another time range.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what the function reads
    [a.over, a.last, a.from, a.to, picked.runs],
  );
  const language = useMemo<Language>(
    () => ({
      completionHelp: 'metrics, labels, values and functions',
      colour: colourPromql,
      complete: (text, caret, explicit) => promqlCompletions(text, caret, explicit, names),
    }),
    [names],
  );

  const link = async () => {
    show(a, savedNameOf(a.q));
    if (!savedNameOf(a.q) && !fitsLink(a.q)) {
      toast('The query is too long for a link. Save it; a saved query has a short link.', 'warn');
      return;
    }
    try {
      await navigator.clipboard.writeText(location.href);
      toast('Link copied. It opens this page as you see it.', 'ok');
    } catch {
      toast('The browser blocked copying. Copy the address of this page instead.', 'warn');
    }
  };

  // A zoom into clock time is queried again with a finer step; a zoom into runs only enlarges.
  const [wider, setWider] = useState<Partial<ExploreQuery> | null>(null);
  const zoomTo = (z: Zoom | null) => {
    if (a.over === 'runs') return show(change({ range: rangeOf(z) }), savedNameOf(a.q));
    if (!z) {
      if (wider) ask(wider);
      setWider(null);
      return;
    }
    if (!outcome) return;
    setWider((w) => w ?? { last: a.last, from: a.from, to: a.to, step: a.step });
    const from = Math.round((outcome.zero + z.from) * 1000);
    ask({ last: '', from, to: Math.max(from + 5_000, Math.round((outcome.zero + z.to) * 1000)), step: 0, every: 0 });
  };

  // Overlaid runs have different phases: those of the first are marked.
  const first = a.over === 'runs' ? picked.runs.find((r) => r.run_id === a.runs[0]) : undefined;
  const decor = useMemo(() => (first ? phases(first) : { bands: [], markers: [] }), [first]);

  const errors = outcome?.q === a.q ? (outcome?.errors ?? []) : [];
  const problem = outcome?.problem && outcome.errors.length === 0 ? outcome.problem : undefined;
  return (
    <>
      <header className="page-head">
        <h1>Explore</h1>
        <span className="sub hide-phone clip">PromQL over the telemetry of all runs</span>
        <div className="actions">
          <button type="button" className="btn" onClick={() => void link()}>
            <Icon name="link" /> Link
          </button>
          {progress ? (
            <button type="button" className="btn danger" onClick={cancel}>
              <Icon name="stop" /> Cancel
            </button>
          ) : (
            <button
              type="button"
              className="btn primary"
              title="Ctrl+Enter"
              disabled={!a.q.trim() || (a.over === 'runs' && a.runs.length === 0)}
              onClick={() => ask()}
            >
              <Icon name="play" /> Run
            </button>
          )}
        </div>
      </header>
      <div className="page explore">
        <MissingQuery name={name} list={saved} />
        <div className="console">
          <Editor
            label="Query"
            value={a.q}
            onChange={(q) => change({ q })}
            language={language}
            errors={errors}
            onRun={() => ask()}
          />
          <SavedQueries
            list={saved}
            current={name}
            sql={a.q}
            chart={exploreChart(viewParams(a).toString())}
            untouched={a.q === began || examples.some((x) => x.q === a.q)}
            onOpen={(q) => {
              setName(q.name);
              ask({ ...fromAddress(choicesOf(q)), q: q.sql });
            }}
            onSaved={(n) => {
              setName(n);
              show(a, n);
            }}
            onRenamed={(n) => {
              setName(n);
              show(a, n);
            }}
            onGone={() => setName('')}
          />
        </div>
        <MetricPicker names={names} scope={`${a.over} ${a.last} ${a.from} ${ids.join()}`} onQuery={(q) => ask({ q })} />
        <div className="toolbar">
          <Segments
            label="Which time is shown"
            value={a.over}
            options={overOptions}
            onChange={(over) => {
              choseTime.current = true;
              ask({ over, range: '' });
            }}
          />
          {a.over === 'time' ? (
            <TimeControls a={a} onChange={(more) => (setWider(null), ask(more))} />
          ) : (
            <RunBar
              runs={a.runs}
              base={a.base}
              knownRuns={picked.runs}
              coloured={!drawn || coloursByRun(drawn)}
              onChange={(runs, base) => change({ runs, base, over: 'runs' })}
            />
          )}
          {follows && (
            <span className="note" role="status">
              The run is live. Refreshing every {duration(followInterval)}.
            </span>
          )}
          {a.runs.length > 1 && a.over === 'runs' && decor.markers.length > 0 && (
            <span className="note muted hide-phone">Phases are those of {runNames(picked.runs)(a.runs[0]!)}.</span>
          )}
          <label className="row note">
            step
            <select className="input small" value={a.step} onChange={(e) => ask({ step: Number(e.target.value) })}>
              {[...new Set([...steps, a.step])].map((s) => (
                <option key={s} value={s}>
                  {s ? duration(s) : 'automatic'}
                </option>
              ))}
            </select>
          </label>
          <span className="note muted hide-phone">Ctrl+Enter runs, Ctrl+Space completes.</span>
        </div>
        {picked.missing.length > 0 && (
          <Notice tone="warn">
            {picked.missing.length === 1 ? 'A run' : `${picked.missing.length} runs`} of the link could not be read;
            they may have been deleted.
          </Notice>
        )}
        {progress && <QueryProgress {...progress} />}
        {problem && (
          <Notice tone={problem.code === 'cancelled' ? 'plain' : 'bad'}>
            <strong>{asSentence(problem.message)}</strong> {asSentence(problem.hint)}
          </Notice>
        )}
        {outcome && drawn && (outcome.answers.length > 0 || !outcome.problem) ? (
          <QueryResult
            outcome={outcome}
            d={drawn}
            progress={progress}
            runs={a.runs}
            relative={outcome.answers.some((x) => x.run !== '')}
            decor={decor}
            stale={outcome.q !== a.q}
            view={a.view}
            unit={a.unit}
            onView={(view) => show(change({ view }), savedNameOf(a.q))}
            onUnit={(unit) => show(change({ unit }), savedNameOf(a.q))}
            zoom={a.over === 'runs' ? zoomOf(a.range) : null}
            onZoom={zoomTo}
          />
        ) : progress ? (
          <section className="panel" aria-label="Result" aria-busy="true">
            <SkeletonRows rows={6} />
          </section>
        ) : outcome && a.q ? (
          <section className="panel" aria-label="Result">
            <Empty tight icon={outcome.problem?.code === 'cancelled' ? 'stop' : 'alert'} title="No answer">
              {outcome.errors.length > 0 ? 'The expression has an error, marked above.' : ''}
            </Empty>
          </section>
        ) : (
          <Examples over={a.over} runs={a.runs.length} onTry={(i) => ask(askedOf(examples[i]!, now.current))} />
        )}
      </div>
    </>
  );
}

function QueryProgress({ done, of }: { done: number; of: number }) {
  return (
    <div className="explore-progress" role="status">
      <div className="progress grow">
        <i style={{ width: of ? `${(done / of) * 100}%` : '4%' }} />
      </div>
      <span className="note muted">{of ? `${done} of ${of} pieces of work` : 'planning'}</span>
    </div>
  );
}

/** TimeControls chooses the clock time and the refresh interval. */
function TimeControls({ a, onChange }: { a: ExploreQuery; onChange: (more: Partial<ExploreQuery>) => void }) {
  const iso = (ms: number) => dateTime(new Date(ms).toISOString());
  return (
    <>
      <label className="row note">
        <span className="sr">Time</span>
        <select
          className="input small"
          value={a.last}
          onChange={(e) => onChange({ last: e.target.value, from: 0, to: 0, step: 0 })}
        >
          {!a.last && (
            <option value="">
              {iso(a.from)} – {iso(a.to)}
            </option>
          )}
          {spans.map(([v, label]) => (
            <option key={v} value={v}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {a.last && (
        <label className="row note">
          again
          <select className="input small" value={a.every} onChange={(e) => onChange({ every: Number(e.target.value) })}>
            {[...new Set([...pauses, a.every])].map((s) => (
              <option key={s} value={s}>
                {s ? `every ${duration(s)}` : 'manually'}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

function Examples(props: { over: Over; runs: number; onTry: (i: number) => void }) {
  return (
    <section className="panel" aria-label="Result">
      <Empty
        tight
        icon="explore"
        title={props.over === 'runs' && props.runs === 0 ? 'Choose the runs to overlay' : 'Enter a query'}
      >
        {props.over === 'runs'
          ? 'Loadstone evaluates the query for each run and aligns the curves at the start of each run.'
          : 'All runs have the same metrics, one sample per second. Examples:'}
      </Empty>
      <ul className="explore-try">
        {examples.map((e, i) => (
          <li key={e.question}>
            <button type="button" onClick={() => props.onTry(i)}>
              <strong>{e.question}</strong>
              <code>{e.q}</code>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
