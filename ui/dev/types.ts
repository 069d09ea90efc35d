// Generates src/api/schema.d.ts from the OpenAPI document: npm run types. --check writes nothing and fails when the
// file is outdated.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript';

const source = new URL('../../docs/openapi.json', import.meta.url);
const target = new URL('../src/api/schema.d.ts', import.meta.url);

interface Operation {
  deprecated?: boolean;
  operationId?: string;
  responses: Record<string, unknown>;
}
type Document = Omit<OpenAPI3, 'paths'> & { paths: Record<string, Record<string, Operation>> };

/** pruned keeps what the page uses: errors have one type, and deprecated paths are dropped. */
function pruned(doc: Document): OpenAPI3 {
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (operation.deprecated) delete item[method];
      delete operation.operationId;
      for (const status of Object.keys(operation.responses)) if (status >= '300') delete operation.responses[status];
    }
    if (Object.keys(item).length === 0) delete doc.paths[path];
  }
  return doc;
}

const doc = pruned(JSON.parse(readFileSync(source, 'utf8')) as Document);
const head = '// Generated from docs/openapi.json with `npm run types`; do not edit.\n\n';
const text =
  head +
  astToString(
    await openapiTS(doc, { alphabetize: true, rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true }),
  );
if (!process.argv.includes('--check')) writeFileSync(target, text);
else if (text !== readFileSync(target, 'utf8')) {
  console.error(`${fileURLToPath(target)} is not what docs/openapi.json says: run npm run types.`);
  process.exitCode = 1;
}
