import { useEffect, useMemo, useRef, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { usePageTitle } from '../app/location';
import type { Zoom } from '../charts/group';
import { Segments } from '../design/Controls';
import { dateTime, duration } from '../design/format';
import { Icon } from '../design/icons';
import { isLive } from '../api/types';
import { phases } from '../runs/series';
import { Empty, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Editor, type Language } from '../editor/Editor';
import { useSavedQueries } from '../tables/queries';
import { choicesOf, exploreChart, GoneQuery, Saved } from '../tables/Saved';
import '../tables/tables.css';
import { type Asking, choices, fitsLink, fromAddress, type Over, rangeOf, spans, toAddress, zoomOf } from './address';
import { namesWithin } from './ask';
import { asked as askedOf, examples } from './examples';
import './explore.css';
import { byRun, draw } from './model';
import { colourPromql, offersAt } from './promql';
import { namesOf, RunBar, usePicked } from './Runs';
import { Shown } from './Shown';
import { clockTime, partsOf, timeOf } from './times';
import { useAnswers } from './useAnswers';
import { stated } from '../design/said';

const overs: { value: Over; label: string }[] = [
  { value: 'time', label: 'Clock time' },
  { value: 'runs', label: 'Since each run’s start' },
];

const steps = [0, 1, 2, 5, 10, 30, 60, 300, 3600];
const pauses = [0, 2, 5, 10, 60];
/** How often runs that go on are asked for, in seconds. */
const followed = 2;

const normal = (search: string) => new URLSearchParams(search).toString();

/** /explore: PromQL over the telemetry of runs. */
export function ExplorePage() {
  usePageTitle('Explore');
  const [, navigate] = useLocation();
  const search = useSearch();
  const toast = useToast();
  const [a, setA] = useState(() => fromAddress(search));
  const [began] = useState(a.q);
  const { outcome, progress, run: answer, cancel } = useAnswers();
  const drawn = useMemo(() => outcome && draw(outcome.answers, outcome.step), [outcome]);
  const ids = useMemo(() => [...a.runs, ...a.base], [a.runs, a.base]);
  const picked = usePicked(ids);
  const [name, setName] = useState(() => new URLSearchParams(search).get('saved') ?? '');
  const saved = useSavedQueries();
  const now = useRef(a);
  now.current = a;
  const lastAsked = useRef<Asking | null>(null);
  /** The address as this page has written it; another one is a link. */
  const shownAt = useRef(normal(search));

  const change = (more: Partial<Asking>) => {
    const next = { ...now.current, ...more };
    now.current = next;
    setA(next);
    return next;
  };

  /** The name of the saved query that is shown, as long as it is that. */
  const keptAs = (q: string) => (saved.data?.find((s) => s.name === name)?.sql === q ? name : '');

  const show = (what: Asking, kept: string) => {
    const to = toAddress(what, kept);
    shownAt.current = normal(to.includes('?') ? to.slice(to.indexOf('?')) : '');
    navigate(to, { replace: true });
  };

  const send = (what: Asking) => {
    if (!what.q.trim()) return;
    const { parts, step, seconds } = partsOf(what, picked.runs, Date.now());
    if (parts.length === 0) return;
    void answer({ q: what.q, parts, step, seconds, name: namesOf(picked.runs) });
  };

  /** Asks what is asked now, and has the address say so. */
  const ask = (more: Partial<Asking> = {}) => {
    const next = change(more);
    lastAsked.current = next;
    show(next, keptAs(next.q));
    send(next);
  };
  const again = useRef(ask);
  again.current = ask;

  // A link is answered once its runs are known; another link while the page is open, too.
  const answered = useRef('');
  const opened = useRef(name);
  const [links, setLinks] = useState(0);
  useEffect(() => {
    if (normal(search) === shownAt.current) return;
    shownAt.current = normal(search);
    const kept = new URLSearchParams(search).get('saved') ?? '';
    opened.current = kept;
    setName(kept);
    // The text of a saved query is not in the address.
    if (!kept) setA((now.current = fromAddress(search)));
    setLinks((n) => n + 1);
  }, [search]);
  const key = `${a.over} ${ids.join()} ${links}`;
  useEffect(() => {
    if (picked.pending || answered.current === key) return;
    answered.current = key;
    again.current();
  }, [key, picked.pending]);

  // A link that names a saved query shows that one; what else the link says goes before what is kept.
  const wish = opened.current ? saved.data?.find((s) => s.name === opened.current) : undefined;
  useEffect(() => {
    if (!wish) return;
    opened.current = '';
    const kept = new URLSearchParams(choicesOf(wish));
    new URLSearchParams(location.search).forEach((v, k) => k !== 'saved' && kept.set(k, v));
    again.current({ ...fromAddress(kept.toString()), q: wish.sql });
  }, [wish]);

  // What was asked is asked again, not what is being written; and not before it is answered.
  const repeat = useRef(() => {});
  repeat.current = () => {
    if (!progress && lastAsked.current) send(lastAsked.current);
  };
  // A run that goes on is followed, and asked for once more when it has ended.
  const follows = a.over === 'runs' && picked.runs.some(isLive);
  const pause = follows ? followed : a.over === 'time' && a.last ? a.every : 0;
  useEffect(() => {
    if (!pause) return;
    const t = setInterval(() => repeat.current(), pause * 1000);
    return () => clearInterval(t);
  }, [pause]);
  const followedSo = useRef(false);
  useEffect(() => {
    if (followedSo.current && !follows) repeat.current();
    followedSo.current = follows;
  }, [follows]);

  const names = useMemo(
    () =>
      namesWithin(() => {
        const asking = now.current;
        if (asking.over === 'time') return clockTime(asking, Date.now());
        const times = picked.runs.flatMap((r) => timeOf(r, Date.now()) ?? []);
        return times.length
          ? { start: Math.min(...times.map((t) => t.start)), end: Math.max(...times.map((t) => t.end)) }
          : { start: Date.now() / 1000 - 7 * 86_400, end: Date.now() / 1000 };
      }),
    // Names are asked for anew when the time is another.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what the function reads
    [a.over, a.last, a.from, a.to, picked.runs],
  );
  const language = useMemo<Language>(
    () => ({
      offersWhat: 'metrics, labels, values and functions',
      colour: colourPromql,
      offer: (text, caret, asked) => offersAt(text, caret, asked, names),
    }),
    [names],
  );

  const link = async () => {
    show(a, keptAs(a.q));
    if (!keptAs(a.q) && !fitsLink(a.q)) {
      toast('The query is too long for a link. Save it: a saved query has a link of its own.', 'warn');
      return;
    }
    try {
      await navigator.clipboard.writeText(location.href);
      toast('The link is copied. Who opens it sees what you see.', 'ok');
    } catch {
      toast('The browser did not allow copying. The address of this page is the link.', 'warn');
    }
  };

  // A part of clock time that is chosen is asked for anew, finer; a part of runs is only shown larger.
  const [wider, setWider] = useState<Partial<Asking> | null>(null);
  const zoomTo = (z: Zoom | null) => {
    if (a.over === 'runs') return show(change({ range: rangeOf(z) }), keptAs(a.q));
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

  // Runs that are laid over each other have phases of their own: those of the first are marked.
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
        <GoneQuery name={name} list={saved} />
        <div className="console">
          <Editor
            label="Query"
            value={a.q}
            onChange={(q) => change({ q })}
            language={language}
            errors={errors}
            onRun={() => ask()}
          />
          <Saved
            list={saved}
            current={name}
            sql={a.q}
            chart={exploreChart(choices(a).toString())}
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
        <div className="toolbar">
          <Segments
            label="Which time is shown"
            value={a.over}
            options={overs}
            onChange={(over) => {
              ask({ over, range: '' });
            }}
          />
          {a.over === 'time' ? (
            <Time a={a} onChange={(more) => (setWider(null), ask(more))} />
          ) : (
            <RunBar
              runs={a.runs}
              base={a.base}
              known={picked.runs}
              coloured={!drawn || byRun(drawn)}
              onChange={(runs, base) => change({ runs, base, over: 'runs' })}
            />
          )}
          {follows && (
            <span className="note" role="status">
              A run goes on: asked again every {duration(followed)}.
            </span>
          )}
          {a.runs.length > 1 && a.over === 'runs' && decor.markers.length > 0 && (
            <span className="note muted hide-phone">Phases are those of {namesOf(picked.runs)(a.runs[0]!)}.</span>
          )}
          <label className="row note">
            a point each
            <select className="input small" value={a.step} onChange={(e) => ask({ step: Number(e.target.value) })}>
              {[...new Set([...steps, a.step])].map((s) => (
                <option key={s} value={s}>
                  {s ? duration(s) : 'as fits'}
                </option>
              ))}
            </select>
          </label>
          <span className="note muted hide-phone">Ctrl+Enter runs, Ctrl+Space completes.</span>
        </div>
        {picked.gone.length > 0 && (
          <Notice tone="warn">
            {picked.gone.length === 1 ? 'A run' : `${picked.gone.length} runs`} of the link could not be read; perhaps
            deleted.
          </Notice>
        )}
        {progress && <Working {...progress} />}
        {problem && (
          <Notice tone={problem.code === 'cancelled' ? 'plain' : 'bad'}>
            <strong>{stated(problem.message)}</strong> {stated(problem.hint)}
          </Notice>
        )}
        {outcome && drawn && (outcome.answers.length > 0 || !outcome.problem) ? (
          <Shown
            outcome={outcome}
            d={drawn}
            progress={progress}
            runs={a.runs}
            relative={outcome.answers.some((x) => x.run !== '')}
            decor={decor}
            stale={outcome.q !== a.q}
            view={a.view}
            unit={a.unit}
            onView={(view) => show(change({ view }), keptAs(a.q))}
            onUnit={(unit) => show(change({ unit }), keptAs(a.q))}
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
              {outcome.errors.length > 0 ? 'The expression cannot be read; the place is marked above.' : ''}
            </Empty>
          </section>
        ) : (
          <Try over={a.over} runs={a.runs.length} onTry={(i) => ask(askedOf(examples[i]!, now.current))} />
        )}
      </div>
    </>
  );
}

function Working({ done, of }: { done: number; of: number }) {
  return (
    <div className="explore-progress" role="status">
      <div className="progress grow">
        <i style={{ width: of ? `${(done / of) * 100}%` : '4%' }} />
      </div>
      <span className="note muted">{of ? `${done} of ${of} pieces of work` : 'planning'}</span>
    </div>
  );
}

/** Which clock time is shown, and how often it is asked again. */
function Time({ a, onChange }: { a: Asking; onChange: (more: Partial<Asking>) => void }) {
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
                {s ? `every ${duration(s)}` : 'when asked'}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

function Try(props: { over: Over; runs: number; onTry: (i: number) => void }) {
  return (
    <section className="panel" aria-label="Result">
      <Empty
        tight
        icon="explore"
        title={props.over === 'runs' && props.runs === 0 ? 'Choose the runs to lay over each other' : 'Ask something'}
      >
        {props.over === 'runs'
          ? 'The query is asked for each of them, and drawn from the start of each.'
          : 'Every run has the same metrics, one sample a second. Try a question:'}
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
