import { useMemo, useState } from 'react';
import type { Scenario } from '../api/types';
import { Icon } from '../design/icons';
import { Empty } from '../design/States';
import { FormContext } from '../templates/fields';
import { ParamsForm } from '../templates/ParamsForm';
import { check, type Schema, set } from '../templates/schema';
import { writeYaml } from '../templates/yaml';

interface Doc {
  params: Record<string, unknown>;
}

/** Parameters previews a plugin's template form and the YAML it writes. */
export function Parameters({ schema }: { schema: Schema }) {
  const [doc, setDoc] = useState<Doc>({ params: {} });
  const errors = useMemo(() => check(doc.params, schema, 'params'), [doc, schema]);
  if (Object.keys(schema.properties ?? {}).length === 0)
    return (
      <Empty tight title="No parameters">
        Leave workload.params of a template empty.
      </Empty>
    );
  return (
    <div className="try-params">
      <FormContext.Provider
        value={{
          // The form uses paths; here the document is the parameters alone.
          config: doc as unknown as Scenario,
          errors,
          set: (path, value) => setDoc((d) => ({ ...d, ...set(d, path, value) })),
          // No parameter control changes more than its field.
          change: () => {},
        }}
      >
        <ParamsForm schema={schema} path="params" />
      </FormContext.Provider>
      <div className="field">
        <span className="label">In the template</span>
        <pre className="code">
          {Object.keys(doc.params ?? {}).length ? writeYaml({ params: doc.params }) : 'params: {}'}
        </pre>
        <div className={errors.length ? 'problem' : 'help'} role="status">
          {errors.length > 0 && <Icon name="alert" size={14} />}
          {errors.length === 0
            ? 'These values are valid. Omitted parameters use their defaults.'
            : errors.length === 1
              ? 'One value is not valid; its field says why.'
              : `${errors.length} values are not valid; their fields say why.`}
        </div>
      </div>
    </div>
  );
}
