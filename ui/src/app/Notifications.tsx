import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, asProblem } from '../api/client';
import { useHasRole, useMe, useTemplates } from '../api/queries';
import type { Delivery, Hook, Notifications as Saved } from '../api/types';
import type { Question } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { HookForm } from './HookForm';
import {
  draftOf,
  eventLabel,
  type HookDraft,
  hookInput,
  hookScope,
  kindLabel,
  lastDelivery,
  resumeInput,
} from './hooks';
import { problemText } from '../design/sentences';

const path = '/api/v1/notifications';
const initialCount = 10;

/** DeliveryOutcome shows the result and time of a delivery attempt. */
function DeliveryOutcome({ of }: { of: Delivery }) {
  return (
    <span className={`badge ${of.arrived ? 'ok' : 'bad'}`} title={of.error || undefined}>
      {of.arrived ? 'Delivered' : 'Failed'}
    </span>
  );
}

/** Notifications lets admins configure hooks and see deliveries. */
export function Notifications({ ask }: { ask: (q: Question) => void }) {
  const known = useMe().isSuccess;
  const admin = useHasRole('admin') && known;
  const saved = useQuery({
    queryKey: ['notifications'],
    enabled: admin,
    refetchInterval: 10_000,
    queryFn: ({ signal }) => api.get(path, { signal }),
  });
  const templates = useTemplates().data ?? [];
  const qc = useQueryClient();
  const toast = useToast();
  const [edited, setEdited] = useState<HookDraft | null>(null);
  const [testing, setTesting] = useState('');
  if (!admin) return null;
  const changed = () => qc.invalidateQueries({ queryKey: ['notifications'] });
  const sendTest = async (h: Hook) => {
    setTesting(h.id);
    try {
      const d = await api.post('/api/v1/notifications/{id}/test', { path: { id: h.id } });
      toast(
        d.arrived ? `Test notification delivered to “${h.name}”.` : `The test of “${h.name}” failed: ${d.error}`,
        d.arrived ? 'ok' : 'bad',
      );
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
    setTesting('');
    await changed();
  };
  const remove = (s: Saved, h: Hook) =>
    ask({
      title: `Delete notification “${h.name}”?`,
      body: `${h.address} no longer receives notifications.`,
      verb: 'Delete notification',
      danger: true,
      act: async () => {
        try {
          const hooks = s.hooks.filter((x) => x.id !== h.id).map(hookInput);
          await api.put(path, { body: { version: s.version, hooks } });
        } finally {
          await changed();
        }
        toast(`Notification “${h.name}” was deleted.`, 'ok');
      },
    });
  const resume = async (s: Saved, h: Hook) => {
    try {
      await api.put(path, { body: { version: s.version, hooks: resumeInput(s.hooks, h.id) } });
      toast(`Notification “${h.name}” was resumed. You are its owner now.`, 'ok');
    } catch (err) {
      toast(problemText(asProblem(err)), 'bad');
    }
    await changed();
  };
  const add = (
    <button type="button" className="btn small" disabled={!saved.data} onClick={() => setEdited(draftOf())}>
      <Icon name="plus" size={14} /> New notification
    </button>
  );
  return (
    <section className="panel" aria-label="Notifications">
      <header>
        <h2>Notifications</h2>
        <div className="end">{add}</div>
      </header>
      <Load from={saved} what="The notifications could not be read." skeleton={<SkeletonRows rows={3} />}>
        {(s) => (
          <>
            {s.hooks.length === 0 && (
              <Empty tight title="No notifications yet">
                Loadstone can call a webhook, post to Slack or send an e-mail when a run finishes, fails, regresses or
                does not start.
              </Empty>
            )}
            <div
              className="table-wrap"
              hidden={s.hooks.length === 0}
              tabIndex={0}
              role="group"
              aria-label="Notifications, scrollable"
            >
              <table className="table cards">
                <thead>
                  <tr>
                    <th>Name</th>
                    <th className="hide-phone">Events</th>
                    <th>Last</th>
                    <th>
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {s.hooks.map((h) => {
                    const last = lastDelivery(s.deliveries, h.id);
                    return (
                      <tr key={h.id}>
                        <td>
                          <strong className="wrap-anywhere">{h.name}</strong>
                          <span className="second wrap-anywhere">
                            {kindLabel(h.kind)} · {h.address}
                            {h.kind === 'email' && ` · to ${(h.to ?? []).join(', ')}`}
                            {h.signed && h.kind !== 'email' && ' · signed'}
                            {h.owner && ` · by ${h.owner}`}
                          </span>
                          {h.suspended_reason && (
                            <span className="second wrap-anywhere why-bad">Suspended: {h.suspended_reason}.</span>
                          )}
                        </td>
                        <td className="hide-phone">
                          {(h.events ?? []).map(eventLabel).join(', ')}
                          <span className="second wrap-anywhere">{hookScope(h, templates)}</span>
                        </td>
                        <td>
                          {last ? <DeliveryOutcome of={last} /> : <span className="muted">never used</span>}
                          {last && (
                            <span className="second" title={dateTime(last.at)}>
                              {ago(last.at)}
                            </span>
                          )}
                        </td>
                        <td className="num act">
                          <span className="row end-actions">
                            {h.suspended_reason && (
                              <button
                                type="button"
                                className="btn primary small"
                                aria-label={`Resume ${h.name}`}
                                onClick={() => void resume(s, h)}
                              >
                                Resume
                              </button>
                            )}
                            <button
                              type="button"
                              className="btn small"
                              disabled={testing === h.id || Boolean(h.suspended_reason)}
                              aria-label={`Send a test to ${h.name}`}
                              onClick={() => void sendTest(h)}
                            >
                              {testing === h.id ? 'Sending…' : 'Test'}
                            </button>
                            <button
                              type="button"
                              className="btn small"
                              aria-label={`Change ${h.name}`}
                              onClick={() => setEdited(draftOf(h))}
                            >
                              Change
                            </button>
                            <button
                              type="button"
                              className="btn danger small"
                              aria-label={`Delete ${h.name}`}
                              onClick={() => remove(s, h)}
                            >
                              Delete
                            </button>
                          </span>
                        </td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
            {(s.hooks.length > 0 || s.deliveries.length > 0) && <DeliveryTable list={s.deliveries} />}
          </>
        )}
      </Load>
      {edited && saved.data && (
        <HookForm
          first={edited}
          saved={saved.data}
          templates={templates}
          onClose={() => setEdited(null)}
          onSaved={(name) => {
            setEdited(null);
            toast(`Notification “${name}” was saved.`, 'ok');
            void changed();
          }}
          onStale={changed}
        />
      )}
    </section>
  );
}

/** DeliveryTable lists the last attempts of the answering server. */
function DeliveryTable({ list }: { list: Delivery[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? list : list.slice(0, initialCount);
  return (
    <>
      <h2 className="h3 body delivered">Deliveries</h2>
      {list.length === 0 ? (
        <p className="body muted">No deliveries since the server started.</p>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Deliveries, scrollable">
          <table className="table dense cards listed deliveries">
            <thead>
              <tr>
                <th>Notification</th>
                <th>Event</th>
                <th>Outcome</th>
                <th>When</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((d) => (
                <tr key={`${d.delivery_id}${d.hook_id}${d.attempt}${d.at}`}>
                  <td className="wrap-anywhere">{d.hook_name}</td>
                  <td>
                    {d.run_id ? <Link href={`/runs/${d.run_id}`}>{eventLabel(d.event)}</Link> : eventLabel(d.event)}
                  </td>
                  <td>
                    <DeliveryOutcome of={d} />
                    {d.attempt > 1 && <span className="muted"> attempt {d.attempt}</span>}
                    {d.error && <span className="second wrap-anywhere">{d.error}</span>}
                  </td>
                  <td className="nowrap" title={dateTime(d.at)}>
                    {ago(d.at)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.length > shown.length && (
        <p className="body">
          <button type="button" className="btn quiet small" onClick={() => setAll(true)}>
            Show all {list.length}
          </button>
        </p>
      )}
    </>
  );
}
