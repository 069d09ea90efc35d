import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { canEdit } from '../app/AccessFields';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem, Problem } from '../api/client';
import { safeText } from '../api/safeText';
import { useConnections, useCreateRun, useHasRole, useMe, usePlugins, useRun, useTemplate } from '../api/queries';
import type { Template } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { ActionsMenu, Segments } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Drift } from '../drift/Drift';
import { Icon } from '../design/icons';
import { limitOf, retarget, usedTarget } from '../start/retarget';
import { Failed, Notice, ProblemNotice, Skeleton, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Conflict } from './Conflict';
import { appliesTo, asNewTemplate, blank, type Draft, draftBody, exampleSource, unplacedErrors } from './draft';
import { FormContext } from './fields';
import { type Finding, withFormLabels } from './findings';
import { withTableType, withWorkload } from './resets';
import { TemplateForm } from './TemplateForm';
import { dropDraft, savedDraft, useDraft } from './useDraft';
import { YamlEditor } from './YamlEditor';
import { hasComments } from './yaml';

/** TemplateEditor loads its start: a saved template, a copy, a run's scenario, or a blank one. */
export default function TemplateEditor({ id }: { id: string | null }) {
  const search = useSearch();
  const params = new URLSearchParams(search);
  const from = id === null ? params.get('from') : null;
  const copy = id === null ? params.get('copy') : null;
  const saved = useTemplate(id ?? copy);
  const run = useQuery({
    queryKey: ['run-as-stored', from],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id: from! }, signal, asStored: true }),
    enabled: from !== null,
  });
  const example = id === null ? params.get('example') : null;
  // The run whose connection and table the example takes over.
  const like = example === null ? null : params.get('like');
  const model = useRun(like ?? '', true, like !== null);
  const gallery = useQuery({
    queryKey: ['gallery'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await import('../start/gallery')).questions,
    enabled: example !== null,
  });
  const [workload, adapter] = id === null ? [params.get('workload'), params.get('adapter')] : [null, null];
  const plugins = usePlugins();
  const connections = useConnections();
  const waiting: Pick<UseQueryResult, 'data' | 'error' | 'refetch'> | null =
    id !== null || copy !== null
      ? saved
      : from !== null
        ? run
        : example !== null && gallery.data
          ? like !== null && !model.error
            ? model
            : gallery
          : example !== null
            ? gallery
            : workload !== null
              ? plugins
              : null;
  if (waiting?.error && !waiting.data)
    return (
      <div className="page">
        <div className="panel">
          <Failed
            what={from ? 'The run could not be read.' : 'The template could not be read.'}
            error={waiting.error}
            retry={() => void waiting.refetch()}
          />
        </div>
      </div>
    );
  if ((waiting && !waiting.data) || (id === null && connections.isPending))
    return (
      <>
        <div className="page-head">
          <Skeleton width={260} height={22} />
        </div>
        <div className="page narrow" aria-busy="true">
          <SkeletonRows rows={12} />
        </div>
      </>
    );
  const t = saved.data;
  let initial: Draft;
  if (id !== null && t) initial = { config: t.config, source: t.source ?? '', edited: null };
  else if (copy !== null && t)
    initial = { config: asNewTemplate(t.config, `${t.name} (copy)`), source: '', edited: 'form' };
  else if (from !== null && run.data) {
    const config = asNewTemplate(run.data.scenario_config, run.data.test_name);
    const limit = params.get('ask') === 'limit';
    initial = {
      config: limit ? limitOf(config, run.data.summary?.latency_ms?.p95) : config,
      source: '',
      edited: 'form',
    };
  } else if (example !== null && gallery.data) {
    const question = gallery.data.find((q) => q.id === example);
    const target = model.data ? usedTarget(model.data) : null;
    const source = question?.source ?? '';
    initial = {
      config: blank(connections.data),
      source: target ? retarget(source, target, !question?.ownTables) : exampleSource(source, connections.data),
      edited: question ? 'yaml' : null,
    };
  } else if (workload !== null && plugins.data)
    initial = { config: withWorkload(blank(connections.data), workload, plugins.data), source: '', edited: 'form' };
  else if (adapter !== null)
    initial = { config: withTableType(blank(connections.data), adapter), source: '', edited: 'form' };
  else initial = { config: blank(connections.data), source: '', edited: null };
  return (
    <Editor
      key={id ?? `new/${from}/${copy}/${example}/${like}/${workload}/${adapter}/${params.get('ask')}`}
      id={id}
      template={id === null ? null : (t ?? null)}
      initial={initial}
    />
  );
}

/** carriedProblem is a rejection from the previous page, shown once. */
function carriedProblem(): Problem | null {
  const { refused } = (history.state ?? {}) as { refused?: Problem };
  return refused ? new Problem(refused.status, refused.code, refused.message, refused.hint, refused.fields) : null;
}

/** carry makes a problem serializable for the browser's history. */
const carry = (p: Problem) => ({
  refused: { status: p.status, code: p.code, message: p.message, hint: p.hint, fields: p.fields },
});

function Editor({ id, template, initial }: { id: string | null; template: Template | null; initial: Draft }) {
  const key = id ?? 'new';
  const [begin] = useState<Draft>(() => (initial.edited === null ? (savedDraft(key) ?? initial) : initial));
  const [restored, setRestored] = useState(begin !== initial);
  const e = useDraft(key, begin);
  const [tabParam, setTab] = useParam('as', 'form');
  const tab = tabParam === 'yaml' ? 'yaml' : 'form';
  const [, navigate] = useLocation();
  const qc = useQueryClient();
  const toast = useToast();
  const create = useCreateRun();
  const [saving, setSaving] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(carriedProblem);
  const messageRef = useRef<HTMLDivElement>(null);
  const [wasValidated, setWasValidated] = useState(false);
  const [version, setVersion] = useState(template?.version ?? 0);
  const [dialog, ask] = useConfirm();
  // The address may open the text of a new template, which only the form has filled in.
  const { showText } = e;
  const lacksText = tab === 'yaml' && e.draft.source === '' && e.draft.edited !== 'yaml';
  useEffect(() => {
    if (lacksText) showText();
  }, [lacksText, showText]);
  const name = safeText(e.draft.config.name ?? '');
  const savedName = safeText(template?.name ?? '');
  usePageTitle(name || 'New template');

  useEffect(() => {
    if (history.state !== null) history.replaceState(null, '');
  }, []);
  // An error appears at the top; the button that caused it may be anywhere.
  useEffect(() => {
    if (refused) messageRef.current?.scrollIntoView({ block: 'center' });
  }, [refused]);

  const wrong = e.errors.some((x) => !x.warning);
  // An untouched field of a new template is not an error yet.
  const shown = useMemo(
    () =>
      wasValidated || id !== null || tab === 'yaml'
        ? e.errors
        : e.errors.filter(
            (x) => x.warning || [...e.touched].some((p) => appliesTo(p, x.field) || appliesTo(x.field, p)),
          ),
    [e.errors, e.touched, wasValidated, id, tab],
  );

  const firstWrong = () =>
    requestAnimationFrame(() => {
      const el = document.querySelector<HTMLElement>('[aria-invalid="true"]');
      el?.focus();
      el?.scrollIntoView({ block: 'center' });
    });

  /** save returns the saved template; null when it is invalid. */
  const save = async (over = version): Promise<Template | null> => {
    setWasValidated(true);
    setRefused(null);
    // While a check is pending, known errors may be outdated: the server decides.
    if (wrong && e.state !== 'checking') {
      firstWrong();
      return null;
    }
    setSaving(true);
    try {
      const t = id
        ? await api.put('/api/templates/{id}', {
            path: { id },
            body: { ...draftBody(e.draft), version: over },
            asStored: true,
          })
        : await api.post('/api/templates', { body: draftBody(e.draft), asStored: true });
      dropDraft(key);
      setRestored(false);
      setVersion(t.version);
      e.reset({ config: t.config, source: t.source ?? e.draft.source, edited: null });
      qc.setQueryData(['template', t.template_id], t);
      await qc.invalidateQueries({ queryKey: ['templates'] });
      return t;
    } catch (err) {
      setRefused(asProblem(err));
      return null;
    } finally {
      setSaving(false);
    }
  };

  const onSave = async (over?: number) => {
    const t = await save(over);
    if (!t) return;
    toast(`Template “${safeText(t.name)}” was saved.`, 'ok');
    if (!id) navigate(`/templates/${t.template_id}${tab === 'yaml' ? '?as=yaml' : ''}`, { replace: true });
  };

  const onRun = async (start: boolean) => {
    const t = e.dirty || !id ? await save() : template;
    if (!t) return;
    try {
      const r = await create.mutateAsync({ template_id: t.template_id, start, matrix: Boolean(t.config.matrix) });
      navigate(r.path);
    } catch (err) {
      const p = asProblem(err);
      setRefused(p);
      if (!id) navigate(`/templates/${t.template_id}`, { replace: true, state: carry(p) });
    }
  };

  const saveCopy = async () => {
    setSaving(true);
    try {
      const config = { ...e.draft.config, name: `${e.draft.config.name} (mine)` };
      const t = await api.post('/api/templates', {
        body: { config: asNewTemplate(config, config.name) },
        asStored: true,
      });
      dropDraft(key);
      e.reset(initial);
      await qc.invalidateQueries({ queryKey: ['templates'] });
      toast(`Template “${safeText(t.name)}” was saved.`, 'ok');
      navigate(`/templates/${t.template_id}`);
    } catch (err) {
      setRefused(asProblem(err));
    } finally {
      setSaving(false);
    }
  };

  const remove = () =>
    ask({
      title: `Delete template “${savedName}”?`,
      body: 'This deletes only the template. Its runs and their figures stay.',
      verb: 'Delete template',
      act: async () => {
        await api.remove('/api/templates/{id}', { path: { id: id! } });
        dropDraft(key);
        e.reset(initial);
        await qc.invalidateQueries({ queryKey: ['templates'] });
        toast(`Template “${savedName}” was deleted.`, 'ok');
        navigate('/templates');
      },
    });

  const takeTheirs = (t: Template) => {
    dropDraft(key);
    setVersion(t.version);
    setRefused(null);
    setRestored(false);
    qc.setQueryData(['template', t.template_id], t);
    e.reset({ config: t.config, source: t.source ?? '', edited: null });
  };

  const busy = saving || create.isPending;
  const may = useHasRole('operator');
  const me = useMe().data;
  useKeys({
    s: () => may && !busy && (e.dirty || !id) && void onSave(),
    Enter: () => may && !busy && void onRun(true),
  });
  const losesComments = e.draft.edited === 'form' && hasComments(initial.source);
  return (
    <>
      <header className="page-head">
        <Link href="/templates" className="back" aria-label="Back to templates" title="Back to templates">
          <Icon name="back" size={18} />
        </Link>
        <div className="grow">
          <h1 className="clip">{id ? name || savedName : 'New template'}</h1>
          <div className="sub clip">
            {e.state === 'unreachable'
              ? 'The server does not answer. Your changes stay in this browser.'
              : shown.length > 0
                ? `${shown.length} ${shown.length === 1 ? 'field needs' : 'fields need'} attention`
                : e.dirty
                  ? template
                    ? 'Unsaved changes'
                    : 'Not saved yet'
                  : template
                    ? `Saved ${ago(template.updated_at)}`
                    : 'Enter a name to save'}
          </div>
        </div>
        <div className="actions">
          <OperatorOnly>
            <button
              type="button"
              className="btn"
              disabled={busy || (!e.dirty && id !== null)}
              aria-keyshortcuts="Control+S"
              title="Ctrl+S"
              onClick={() => void onSave()}
            >
              {saving ? 'Saving…' : 'Save'}
            </button>
            <button
              type="button"
              className="btn primary"
              disabled={busy}
              aria-keyshortcuts="Control+Enter"
              title="Ctrl+Enter"
              onClick={() => void onRun(true)}
            >
              <Icon name="play" /> {create.isPending ? 'Starting…' : e.dirty || !id ? 'Save and run' : 'Run'}
            </button>
          </OperatorOnly>
          <ActionsMenu
            label="More actions for this template"
            actions={[
              {
                label: 'Prepare a run without starting it',
                icon: 'clock',
                needs: 'operator',
                act: () => void onRun(false),
              },
              ...(id
                ? [
                    {
                      label: 'Duplicate',
                      icon: 'copy',
                      needs: 'operator' as const,
                      act: () => navigate(`/templates/new?copy=${id}`),
                    },
                    {
                      label: 'Runs and drift over time',
                      icon: 'history',
                      act: () => navigate(`/history?template=${id}`),
                    },
                    null,
                    { label: 'Delete template', icon: 'trash', danger: true, needs: 'operator' as const, act: remove },
                  ]
                : []),
            ]}
          />
        </div>
      </header>
      <div className="page narrow">
        <div className="toolbar">
          <Segments
            label="Edit as"
            value={tab}
            options={[
              { value: 'form', label: 'Form' },
              { value: 'yaml', label: 'YAML' },
            ]}
            onChange={(t) => {
              if (t === 'yaml') e.showText();
              setTab(t);
            }}
          />
          <span className="muted note" role="status">
            {e.state === 'checking' && e.dirty ? 'Checking…' : ''}
          </span>
          {template && (
            <span className="muted note end hide-phone" title={dateTime(template.updated_at)}>
              version {version}
              {template.created_by ? ` · by ${template.created_by}` : ''}
            </span>
          )}
        </div>
        {id && template && me && may && !canEdit(template.access, me) && (
          <Notice>
            <strong>
              This template is {template.access.owner ? `${safeText(template.access.owner)}’s` : 'an admin’s'}.
            </strong>{' '}
            Save your changes as a copy of your own.{' '}
            <Link href={`/templates/new?copy=${id}`} className="btn small">
              Duplicate
            </Link>
          </Notice>
        )}
        {restored && (
          <Notice>
            <strong>Your unsaved changes were restored.</strong>{' '}
            <button
              type="button"
              className="btn small"
              onClick={() => {
                dropDraft(key);
                setRestored(false);
                e.reset(initial);
              }}
            >
              Discard them
            </button>
          </Notice>
        )}
        {refused && (
          <div ref={messageRef}>
            {id && refused.fields.some((f) => f.field === 'version') ? (
              <Conflict
                id={id}
                draft={e.draft}
                busy={busy}
                onMine={(v) => void onSave(v)}
                onTheirs={takeTheirs}
                onCopy={() => void saveCopy()}
              />
            ) : (
              <ProblemNotice error={refused} />
            )}
          </div>
        )}
        {e.hasHiddenCharacters && may && (
          <Notice tone="warn">
            <strong>This template contains invisible characters.</strong> The fields below name them.{' '}
            <button type="button" className="btn small" onClick={e.removeUnseen}>
              Remove them
            </button>
          </Notice>
        )}
        {tab === 'form' && losesComments && (
          <Notice>Saving from the form removes the comments of the YAML. Edit the YAML to keep them.</Notice>
        )}
        {tab === 'yaml' ? (
          <YamlEditor value={e.draft.source} onChange={e.setSource} errors={shown} />
        ) : e.formable ? (
          <FormContext.Provider value={{ config: e.draft.config, errors: shown, set: e.setField, change: e.change }}>
            <UnplacedErrors errors={shown} />
            <TemplateForm isNew={id === null} />
          </FormContext.Provider>
        ) : (
          <div className="panel">
            <div className="state">
              <Icon name="alert" size={28} />
              <h2 className="h3">The YAML has errors</h2>
              <p>
                It has {e.errors.length} {e.errors.length === 1 ? 'error' : 'errors'}. Correct them in the text to see
                the form.
              </p>
              <div className="row">
                <button type="button" className="btn primary" onClick={() => setTab('yaml')}>
                  Edit the YAML
                </button>
              </div>
            </div>
          </div>
        )}
        {id && <Drift template={id} />}
      </div>
      {dialog}
    </>
  );
}

/** useKeys binds keys with Ctrl or ⌘, wherever the focus is. */
function useKeys(keys: Record<string, () => unknown>) {
  const current = useRef(keys);
  useEffect(() => {
    current.current = keys;
  });
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (!(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey || !current.current[e.key]) return;
      if ((e.target as HTMLElement | null)?.closest('dialog')) return;
      e.preventDefault();
      current.current[e.key]!();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
}

/** UnplacedErrors shows errors of fields that have no visible control. */
function UnplacedErrors({ errors }: { errors: Finding[] }) {
  const [lost, setLost] = useState<Finding[]>([]);
  // The visible controls depend on mode, plugin and schema, so the page is scanned again after each change.
  useLayoutEffect(() => {
    const fieldPaths = [...document.querySelectorAll<HTMLElement>('[data-field]')].map((c) => c.dataset.field!);
    const next = unplacedErrors(errors, fieldPaths);
    setLost((now) => (JSON.stringify(now) === JSON.stringify(next) ? now : next));
  }, [errors]);
  if (lost.length === 0) return null;
  return (
    <Notice tone="bad">
      <strong>These fields have no control in the form. Change them in the YAML.</strong>
      <ul>
        {lost.map((e) => (
          <li key={e.field + e.message}>
            <code>{e.field}</code> {withFormLabels(e.message)}
            {e.hint ? `: ${withFormLabels(e.hint)}${/[.?]$/.test(e.hint) ? '' : '.'}` : '.'}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
