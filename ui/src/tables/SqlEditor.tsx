import { type ComponentProps, useMemo } from 'react';
import type { QueryRelation } from '../api/types';
import { Editor, type Language } from '../editor/Editor';
import { colourSql, sqlCompletions, wordAt } from './sql';

type Props = Omit<ComponentProps<typeof Editor>, 'language'> & { catalog: QueryRelation[] };

/** SqlEditor completes tables and columns. */
export function SqlEditor({ catalog, ...rest }: Props) {
  const language = useMemo<Language>(
    () => ({
      completionHelp: 'tables and columns',
      colour: colourSql,
      complete: (text, caret, explicit) => {
        const { word, before, from } = wordAt(text, caret);
        return { from, offers: explicit || word || before ? sqlCompletions(text, caret, catalog) : [] };
      },
    }),
    [catalog],
  );
  return <Editor {...rest} language={language} />;
}
