import { useId, useRef, useState } from 'react';
import { Segments, Term } from '../design/Controls';
import { terms } from '../design/terms';
import { firstInvalidLine } from './utf8';
import { Problems, TextField, useErrors, useForm } from './fields';
import { type FeedSource, withFeed } from './resets';
import { RunPicker } from './RunPicker';
import { get } from './schema';

/** maxFileBytes is the server's limit, see engine.MaxFeedCSV. */
const maxFileBytes = 4 << 20;

/** FeedField chooses a replay's source: a recorded run, or a file of CSV or JSON lines. */
export function FeedField() {
  const { config, set, change } = useForm();
  const path = 'workload.feed';
  const feed = get(config, path) as { run?: string; csv?: string } | null | undefined;
  const csv = typeof feed?.csv === 'string';
  const errors = useErrors(path).filter((e) => e.field === path);
  const [refused, setRefused] = useState('');
  const id = useId();
  /** The input of the other source, restored when it is chosen again. */
  const other = useRef<FeedSource | null>(null);
  const choose = (kind: string) => {
    if ((kind === 'csv') === csv) return;
    const next = other.current ?? { feed: kind === 'csv' ? { csv: '' } : { run: '' } };
    const statements = get(config, 'workload.params.statements');
    other.current = { feed: csv ? { csv: feed.csv! } : { run: feed?.run ?? '' }, statements };
    change(path, (c) => withFeed(c, next));
  };
  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > maxFileBytes) {
      setRefused(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MB; the limit is 4 MB. Use a part of the file.`);
      return;
    }
    const bytes = new Uint8Array(await file.arrayBuffer());
    const line = firstInvalidLine(bytes);
    if (line > 0) {
      setRefused(`Line ${line} of ${file.name} is not UTF-8 text. Save the file as UTF-8; write bytes in hexadecimal.`);
      return;
    }
    setRefused('');
    set(path, { csv: new TextDecoder().decode(bytes) });
  };
  return (
    <div className="stack" data-field={path}>
      <div className="field">
        <div className="label">
          <Term tip={terms.feed}>Operations from</Term>
        </div>
        <Segments
          label="Operations from"
          value={csv ? 'csv' : 'run'}
          options={[
            { value: 'run', label: 'A recorded run' },
            { value: 'csv', label: 'A file' },
          ]}
          onChange={choose}
        />
        {errors.length > 0 && (
          <div className="problem">
            <Problems errors={errors} path={path} />
          </div>
        )}
      </div>
      {csv ? (
        <>
          <TextField
            path="workload.feed.csv"
            label="Lines"
            long
            mono
            placeholder={'at_ms,statement,values\n0,find,17'}
            keepHelp
            help={
              <>
                Each line: milliseconds since the start, the id of a statement, and its values. Or JSON lines:{' '}
                <code>{'{"at_ms": 0, "statement": "find", "values": [17]}'}</code>.
              </>
            }
          />
          <div className="field">
            <label className="label" htmlFor={id}>
              Or choose a file
            </label>
            <input
              id={id}
              className="input"
              type="file"
              accept=".csv,.jsonl,.ndjson,.json,text/csv,text/plain,application/json"
              onChange={(e) => void read(e.target.files?.[0])}
            />
            <div className={refused ? 'problem' : 'help'}>
              {refused || 'At most 4 MB. The text becomes part of the template.'}
            </div>
          </div>
        </>
      ) : (
        <RunPicker path="workload.feed.run" />
      )}
    </div>
  );
}
