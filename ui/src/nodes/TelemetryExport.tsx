import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { ago, bytes, count, plain } from '../design/format';

/** TelemetryExport shows the telemetry this server exports and its delivery; nothing without an export. */
export function TelemetryExport({ now }: { now: number }) {
  const destinations = useQuery({
    queryKey: ['out'],
    queryFn: ({ signal }) => api.get('/api/v1/out', { signal }).then((r) => r.destinations ?? []),
    refetchInterval: 5_000,
  });
  const list = destinations.data ?? [];
  if (list.length === 0) return null;
  return (
    <section className="panel" aria-label="Telemetry export">
      <header>
        <h2 className="h3">Telemetry export</h2>
        <span className="muted note">
          Samples and annotations of live runs that this server has exported since it started.
        </span>
      </header>
      <div className="table-wrap" tabIndex={0} role="group" aria-label="Telemetry export, scrollable">
        <table className="table dense">
          <thead>
            <tr>
              <th scope="col">To</th>
              <th scope="col">Address</th>
              <th scope="col" className="num">
                Sent
              </th>
              <th scope="col" className="num">
                Waiting
              </th>
              <th scope="col" className="num">
                Lost
              </th>
              <th scope="col">Last failure</th>
            </tr>
          </thead>
          <tbody>
            {list.map((d) => {
              const lost = Object.entries(d.lost_counts ?? {}).filter(([, n]) => n > 0);
              return (
                <tr key={d.name}>
                  <td>{d.name}</td>
                  <td>{d.address}</td>
                  <td className="num">{plain(count(d.sent_count))}</td>
                  <td className="num">
                    {plain(count(d.waiting_count))}, {plain(bytes(d.waiting_bytes))}
                  </td>
                  <td className="num">
                    {plain(count(lost.reduce((sum, [, n]) => sum + n, 0)))}
                    {lost.length > 0 && <span className="muted"> ({lost.map(([why]) => why).join(', ')})</span>}
                  </td>
                  <td className={d.last_error ? 'failure' : undefined}>
                    {d.failing ? 'Failing' : d.last_error ? 'Recovered' : 'None'}
                    {d.last_error && (
                      <span className="muted">
                        {' '}
                        · {d.last_error}, {ago(d.last_error_at, now)}
                      </span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
