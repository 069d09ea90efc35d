import type { Delivery, FieldError, GivenHook, Hook } from '../api/types';
import { formatTags, parseTags } from '../runs/tagLines';

/** events are the notification events, with the form's labels. */
export const events = [
  { value: 'finished', label: 'Finished', what: 'completed without a regression' },
  {
    value: 'regressed',
    label: 'Regressed',
    what: 'completed worse than the template’s baseline or, without a baseline, with a failed threshold',
  },
  { value: 'threshold', label: 'Threshold', what: 'completed with a failed threshold' },
  { value: 'failed', label: 'Failed', what: 'ended without completing' },
  { value: 'missed', label: 'Missed', what: 'did not start at its scheduled time' },
] as const;

export const kinds = [
  { value: 'webhook', label: 'Webhook', what: 'a JSON POST, signed if you set a secret' },
  { value: 'slack', label: 'Slack-compatible', what: 'a message to an incoming webhook of Slack' },
  { value: 'email', label: 'E-mail', what: 'a message with the figures through a mail server' },
] as const;

/** eventLabel also handles events of a newer server. */
export const eventLabel = (e: string): string =>
  e === 'test' ? 'Test' : (events.find((v) => v.value === e)?.label ?? e);

export const kindLabel = (k: string): string => kinds.find((v) => v.value === k)?.label ?? k;

const kindOf = (h?: Hook): GivenHook['kind'] => kinds.find((k) => k.value === h?.kind)?.value ?? 'webhook';

/** HookDraft is a hook being edited. An empty address or secret keeps the saved one. */
export interface HookDraft {
  id?: string;
  name: string;
  kind: GivenHook['kind'];
  url: string;
  secret: string;
  unsign: boolean;
  /** Of an e-mail: its sender, its recipients with commas between them, and the user of the mail server. */
  from: string;
  to: string;
  user: string;
  events: string[];
  template: string;
  tags: string;
}

export function draftOf(h?: Hook): HookDraft {
  return {
    id: h?.id,
    name: h?.name ?? '',
    kind: kindOf(h),
    url: '',
    secret: '',
    unsign: false,
    from: h?.from ?? '',
    to: (h?.to ?? []).join(', '),
    user: h?.user ?? '',
    events: h ? (h.events ?? []) : ['regressed', 'failed'],
    template: h?.template_id ?? '',
    tags: formatTags(h?.tags),
  };
}

/** hookInput sends a saved hook back; its address and secret stay. */
export const hookInput = (h: Hook): GivenHook => ({
  id: h.id,
  name: h.name,
  kind: kindOf(h),
  ...(h.kind === 'email' && { from: h.from, to: h.to, user: h.user }),
  events: h.events ?? [],
  ...(h.template_id && { template_id: h.template_id }),
  ...(h.tags && { tags: h.tags }),
});

/** resumeInput sends all hooks back, one of them to be taken over by the user. */
export const resumeInput = (hooks: Hook[], id: string): GivenHook[] =>
  hooks.map((h) => ({ ...hookInput(h), ...(h.id === id && { resume: true }) }));

/** applyDraft returns the hooks with one replaced or appended, and its index; or what is wrong with its tags. */
export function applyDraft(hooks: Hook[], d: HookDraft): { hooks: GivenHook[]; at: number } | string {
  const tags = parseTags(d.tags);
  if (typeof tags === 'string') return tags;
  const input: GivenHook = {
    ...(d.id && { id: d.id }),
    name: d.name.trim(),
    kind: d.kind,
    events: d.events,
    ...(d.template && { template_id: d.template }),
    ...(Object.keys(tags).length > 0 && { tags }),
    ...(d.url.trim() && { url: d.url.trim() }),
    ...(d.kind === 'email' && {
      from: d.from.trim(),
      to: d.to.split(',').flatMap((a) => a.trim() || []),
      ...(d.user.trim() && { user: d.user.trim() }),
    }),
    ...(d.kind === 'slack' || d.unsign || (d.kind === 'email' && !d.user.trim())
      ? { secret: '' }
      : d.secret && { secret: d.secret }),
  };
  const at = hooks.findIndex((h) => h.id === d.id);
  if (at < 0) return { hooks: [...hooks.map(hookInput), input], at: hooks.length };
  return { hooks: hooks.map((h, i) => (i === at ? input : hookInput(h))), at };
}

/** hookErrors maps the server's field errors of one hook by field. */
export function hookErrors(fields: FieldError[], at: number): Record<string, string> {
  const own = `hooks[${at}].`;
  const out: Record<string, string> = {};
  for (const f of fields) {
    const path = f.field.replace(/^body\./, '');
    if (path.startsWith(own))
      out[path.slice(own.length).split(/[.[]/)[0]!] ??= f.hint ? `${f.message}; ${f.hint}` : f.message;
  }
  return out;
}

/** hookScope says in one line which runs a hook reports. */
export function hookScope(h: Hook, templates: { template_id: string; name: string }[]): string {
  const tags = Object.entries(h.tags ?? {}).map(([k, v]) => `${k}:${v}`);
  const tagged = tags.length > 0 ? ` with ${tags.join(', ')}` : '';
  if (!h.template_id) return `all runs${tagged}`;
  const t = templates.find((x) => x.template_id === h.template_id);
  return `runs of ${t ? `“${t.name}”` : 'a deleted template'}${tagged}`;
}

/** lastDelivery is the last attempt of a hook; deliveries are newest first. */
export const lastDelivery = (deliveries: Delivery[], id: string): Delivery | undefined =>
  deliveries.find((d) => d.hook_id === id);
