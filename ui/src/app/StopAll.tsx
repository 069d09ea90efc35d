import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';
import { useLiveRuns } from '../api/queries';
import { useConfirm } from '../design/Dialog';
import { Icon } from '../design/icons';
import { useToast } from '../design/Toast';
import { OperatorOnly } from './OperatorOnly';

/** stopResult summarizes the result of stopping everything. */
export function stopResult(r: {
  here: { error?: string }[];
  elsewhere: { error?: string }[];
  store_answered: boolean;
}): { text: string; ok: boolean } {
  const all = [...r.here, ...r.elsewhere];
  const failed = all.filter((s) => s.error).length;
  const stopped = all.length - failed;
  const runs = (n: number) => `${n} ${n === 1 ? 'run' : 'runs'}`;
  let text = all.length === 0 ? 'No run was active.' : `${runs(stopped)} stopping.`;
  if (failed > 0) text += ` ${runs(failed)} could not be reached.`;
  if (!r.store_answered)
    text += ' The control store does not answer, so runs of other servers continue. Stop them on each server.';
  return { text, ok: failed === 0 && r.store_answered };
}

/**
 * useHasPendingRuns reports whether matrices run or runs wait. It polls only while no run is live, and after the rest
 * of the page has loaded.
 */
function useHasPendingRuns(enabled: boolean) {
  const pollInterval = 5_000;
  return useQuery({
    queryKey: ['more-to-come'],
    queryFn: async ({ signal }) => {
      const [needs, list] = await Promise.all([
        api.get('/api/v1/scaling', { signal }),
        api.get('/api/matrices', { query: { limit: 50 }, signal }),
      ]);
      const matrices = list.matrices ?? [];
      return needs.queue_depth > 0 || matrices.some((m) => m.status === 'RUNNING' || m.status === 'CANCELLING');
    },
    enabled,
    initialData: false,
    staleTime: pollInterval,
    refetchInterval: pollInterval,
  });
}

/** StopAll stops everything that loads a database. It works while the control store is down. */
export function StopAll({ className }: { className: string }) {
  const [dialog, ask] = useConfirm();
  const toast = useToast();
  const qc = useQueryClient();
  const live = useLiveRuns();
  const idle = live.data !== undefined && (live.data.runs ?? []).length === 0 && !live.error;
  const more = useHasPendingRuns(idle);
  // When runs cannot be listed, some may still be active: the button stays.
  if (idle && !more.data && !more.error) return null;
  const stop = () =>
    ask({
      title: 'Stop all runs?',
      body: 'This stops every run and matrix of every user on all servers. The runs drain first.',
      verb: 'Stop everything',
      keep: 'Keep running',
      act: async () => {
        const { text, ok } = stopResult(await api.post('/api/stop-all'));
        toast(text, ok ? 'ok' : 'bad');
        await qc.invalidateQueries({ queryKey: ['runs'] });
        await qc.invalidateQueries({ queryKey: ['more-to-come'] });
      },
    });
  return (
    <OperatorOnly>
      <button type="button" className={className} onClick={stop} title="Stop all runs">
        <Icon name="stop" size={18} />
        <span>Stop all runs</span>
      </button>
      {dialog}
    </OperatorOnly>
  );
}
