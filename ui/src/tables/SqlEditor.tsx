import { type ComponentProps, useMemo } from 'react';
import type { QueryRelation } from '../api/types';
import { Editor, type Language } from '../editor/Editor';
import { colourSql, offers, wordAt } from './sql';

type Props = Omit<ComponentProps<typeof Editor>, 'language'> & { catalog: QueryRelation[] };

/** The editor for SQL: it completes tables and columns. */
export function SqlEditor({ catalog, ...rest }: Props) {
  const language = useMemo<Language>(
    () => ({
      offersWhat: 'tables and columns',
      colour: colourSql,
      offer: (text, caret, asked) => {
        const { word, before, from } = wordAt(text, caret);
        return { from, offers: asked || word || before ? offers(text, caret, catalog) : [] };
      },
    }),
    [catalog],
  );
  return <Editor {...rest} language={language} />;
}
