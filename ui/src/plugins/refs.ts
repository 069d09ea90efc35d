import type { Plugin } from '../api/types';

export type Kind = 'workload' | 'adapter';

/** refOf names one exact version. */
export const refOf = (p: Pick<Plugin, 'name' | 'version'>) => `${p.name}@${p.version}`;

export const titleOf = (p: Plugin) => p.manifest.title || p.name;

/** findPlugin resolves a template's reference: a hash, a name with version, or a name. */
export function findPlugin(plugins: Plugin[] | undefined, kind: Kind | null, ref: string): Plugin | undefined {
  const all = (plugins ?? []).filter((p) => kind === null || p.kind === kind);
  return (
    all.find((p) => p.sha256 === ref || refOf(p) === ref) ??
    all.find((p) => p.name === ref && p.default) ??
    all.find((p) => p.name === ref)
  );
}

/** pluginOptions are the enabled plugins by name, and by version where there are several. */
export function pluginOptions(plugins: Plugin[] | undefined, kind: Kind): { value: string; label: string }[] {
  const usable = (plugins ?? []).filter((p) => p.kind === kind && p.state === 'enabled');
  return usable
    .filter((p) => p.default)
    .flatMap((p) => {
      const versions = usable.filter((o) => o.name === p.name);
      const label = p.manifest.title ? `${p.name}: ${p.manifest.title}` : p.name;
      if (versions.length === 1) return [{ value: p.name, label }];
      return [
        { value: p.name, label: `${label} (the highest version, now ${p.version})` },
        ...versions.map((v) => ({ value: refOf(v), label: `${refOf(v)}, always this version` })),
      ];
    });
}
