import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, asProblem } from '../api/client';
import type { Schedule, ScheduledStart } from '../api/types';
import { usePageTitle } from '../app/location';
import { OperatorOnly } from '../app/OperatorOnly';
import { ActionsMenu } from '../design/Controls';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { problemText } from '../design/sentences';
import { Empty, Load, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { ScheduleForm } from './ScheduleForm';
import { draftOf, outcomeText, outcomeTone, stateText } from './schedules';

/** SchedulesPage lists schedules with their next and last starts. */
export function SchedulesPage() {
  usePageTitle('Schedules');
  const list = useQuery({
    queryKey: ['schedules'],
    queryFn: ({ signal }) => api.get('/api/v1/schedules', { signal }),
    refetchInterval: 15_000,
  });
  const [editing, setEditing] = useState<Schedule | 'new' | null>(null);
  const [shown, setShown] = useState<Schedule | null>(null);
  const add = (
    <OperatorOnly>
      <button type="button" className="btn primary" onClick={() => setEditing('new')}>
        <Icon name="plus" /> New schedule
      </button>
    </OperatorOnly>
  );
  return (
    <>
      <header className="page-head">
        <h1>Schedules</h1>
        <span className="sub hide-phone">Runs of templates that start by themselves.</span>
        <div className="actions">{add}</div>
      </header>
      <div className="page narrow">
        <Load
          from={list}
          what="The schedules could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={4} />
            </div>
          }
          empty={(d) =>
            d.schedules.length === 0 && (
              <div className="panel">
                <Empty icon="clock" title="No schedule yet" actions={add}>
                  A schedule starts a run of a template every night, every week or at other times. Under Settings,
                  notifications tell you when such a run regressed, failed or did not start.
                </Empty>
              </div>
            )
          }
        >
          {(d) => (
            <div className="stack">
              {d.schedules.map((s) => (
                <Card key={s.schedule_id} s={s} onEdit={() => setEditing(s)} onStarts={() => setShown(s)} />
              ))}
            </div>
          )}
        </Load>
      </div>
      {editing && <ScheduleForm existing={editing === 'new' ? null : editing} onClose={() => setEditing(null)} />}
      {shown && <Starts of={shown} onClose={() => setShown(null)} />}
    </>
  );
}

function Card({ s, onEdit, onStarts }: { s: Schedule; onEdit: () => void; onStarts: () => void }) {
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const idle = s.paused || Boolean(s.suspended_reason);
  const changed = () => qc.invalidateQueries({ queryKey: ['schedules'] });
  const pause = async (paused: boolean) => {
    try {
      await api.put('/api/v1/schedules/{id}', {
        path: { id: s.schedule_id },
        body: { ...draftOf(s), paused, version: s.version },
      });
      toast(`Schedule “${s.name}” was ${paused ? 'paused' : 'resumed'}.`, 'ok');
    } catch (err) {
      toast(problemText(asProblem(err)), 'bad');
    }
    await changed();
  };
  const remove = () =>
    ask({
      title: `Delete schedule “${s.name}”?`,
      body: 'It starts no more runs. The runs that it started stay.',
      verb: 'Delete schedule',
      act: async () => {
        await api.remove('/api/v1/schedules/{id}', { path: { id: s.schedule_id } });
        await changed();
        toast(`Schedule “${s.name}” was deleted.`, 'ok');
      },
    });
  return (
    <section className="panel card" aria-label={s.name}>
      <div className="card-head">
        <Icon name="clock" size={20} />
        <div className="grow">
          <div className="row">
            <h2 className="wrap-anywhere">{s.name}</h2>
            <span className="chip mono">{s.cron}</span>
            <span className="chip">{s.time_zone}</span>
          </div>
          <p className="muted">
            Runs{' '}
            <Link href={`/templates/${encodeURIComponent(s.template_id)}`} className="wrap-anywhere">
              {s.template_name}
            </Link>{' '}
            as {s.owner}.
          </p>
          <p className={s.suspended_reason ? 'why-bad' : 'muted'}>{stateText(s)}</p>
          {s.last && (
            <p className="muted">
              Last: <Outcome of={s.last} /> <span title={dateTime(s.last.due_at)}>{ago(s.last.due_at)}</span>
            </p>
          )}
        </div>
        <div className="row nowrap">
          <button type="button" className="btn" onClick={onStarts} aria-label={`Starts of ${s.name}`}>
            Starts
          </button>
          <ActionsMenu
            label={`Actions for ${s.name}`}
            actions={[
              { label: 'Edit', icon: 'edit', needs: 'operator', act: onEdit },
              {
                label: idle ? 'Resume' : 'Pause',
                icon: idle ? 'play' : 'stop',
                needs: 'operator',
                act: () => void pause(!idle),
              },
              null,
              { label: 'Delete schedule', icon: 'trash', danger: true, needs: 'operator', act: remove },
            ]}
          />
        </div>
      </div>
      {dialog}
    </section>
  );
}

/** Outcome shows what became of a start, with its run and the reason. */
function Outcome({ of }: { of: ScheduledStart }) {
  const to = of.run_id
    ? `/runs/${encodeURIComponent(of.run_id)}`
    : of.matrix_id && `/matrix/${encodeURIComponent(of.matrix_id)}`;
  return (
    <>
      <span className={`badge ${outcomeTone(of)}`}>{outcomeText(of)}</span>{' '}
      {to && <Link href={to}>{of.run_id ? 'run' : 'matrix'}</Link>}{' '}
      {of.reason && <span className="wrap-anywhere">{of.reason}</span>}
    </>
  );
}

/** Starts lists what became of a schedule's starts. */
function Starts({ of, onClose }: { of: Schedule; onClose: () => void }) {
  const list = useQuery({
    queryKey: ['schedules', of.schedule_id, 'starts'],
    queryFn: ({ signal }) => api.get('/api/v1/schedules/{id}/starts', { path: { id: of.schedule_id }, signal }),
  });
  return (
    <Dialog title={`Starts of “${of.name}”`} wide onClose={onClose}>
      <Load
        from={list}
        what="The starts could not be read."
        skeleton={<SkeletonRows rows={5} />}
        empty={(d) => d.starts.length === 0 && <p className="muted">Nothing was due yet.</p>}
      >
        {(d) => (
          <ul className="stack">
            {d.starts.map((st) => (
              <li key={st.due_at}>
                <span className="nowrap">{dateTime(st.due_at)}</span> <Outcome of={st} />
              </li>
            ))}
          </ul>
        )}
      </Load>
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
