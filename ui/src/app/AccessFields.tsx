import { useId } from 'react';
import { useMe } from '../api/queries';
import type { Access, AccessInput, User } from '../api/types';

/** Who may use a thing, as the form holds it. */
export interface AccessDraft {
  restricted: boolean;
  users: string;
}

export const draftOf = (a?: Access): AccessDraft => ({
  restricted: a?.restricted ?? false,
  users: (a?.users ?? []).map((u) => u.name).join(', '),
});

/** What is sent; undefined where nothing was changed. */
export function accessInput(draft: AccessDraft, saved?: Access): AccessInput | undefined {
  const before = draftOf(saved);
  if (draft.restricted === before.restricted && draft.users === before.users) return undefined;
  return { restricted: draft.restricted, users: draft.users.split(/[\s,;]+/).filter((n) => n !== '') };
}

/** Whether the one who is signed in says who may use a thing: its owner, or an admin. */
export function useOwns(a?: Access): boolean {
  const me = useMe().data;
  return me?.role === 'admin' || a === undefined || (a.owner_id !== undefined && a.owner_id === me?.user_id);
}

/** Whose a thing is and who may use it, in words. */
export function accessWords(a: Access): string {
  if (!a.restricted) return a.owner ? `${a.owner}’s; every operator may use it` : 'every operator may use it';
  const users = (a.users ?? []).map((u) => u.name);
  const who = [...(a.owner ? [`its owner ${a.owner}`] : []), ...users];
  return `only ${who.length > 0 ? `${who.join(', ')} and ` : ''}admins may use it`;
}

/** Whether a user may run something by a thing, as the server judges it. */
export function mayUse(a: Access, me: Pick<User, 'user_id' | 'role'>): boolean {
  if (me.role === 'admin') return true;
  const named = a.owner_id === me.user_id || (a.users ?? []).some((u) => u.user_id === me.user_id);
  return me.role === 'operator' && (!a.restricted || named);
}

/** Whether a user may change a thing, as the server judges it: its owner, admins, and operators what nobody owns. */
export function mayChange(a: Access, me: Pick<User, 'user_id' | 'role'>): boolean {
  if (me.role !== 'operator') return me.role === 'admin';
  return a.owner_id ? a.owner_id === me.user_id : !a.restricted;
}

/** Fields by which the owner of a thing says who may use it. */
export function AccessFields(props: {
  saved?: Access;
  value: AccessDraft;
  onChange: (d: AccessDraft) => void;
  problem?: string;
}) {
  const id = useId();
  const owns = useOwns(props.saved);
  if (!owns) return <p className="muted">{props.saved && `It is ${accessWords(props.saved)}.`}</p>;
  const { value, onChange } = props;
  return (
    <fieldset className="field choices">
      <legend className="label">Who may use it</legend>
      <label className="choice">
        <input
          type="radio"
          name={id}
          checked={!value.restricted}
          onChange={() => onChange({ ...value, restricted: false })}
        />
        <span>
          <strong>Every operator</strong>
        </span>
      </label>
      <label className="choice">
        <input
          type="radio"
          name={id}
          checked={value.restricted}
          onChange={() => onChange({ ...value, restricted: true })}
        />
        <span>
          <strong>Only {props.saved?.owner ?? (props.saved ? 'admins' : 'you')}, admins and these users</strong>
        </span>
      </label>
      {value.restricted && (
        <input
          className="input"
          aria-label="Users who may use it"
          value={value.users}
          onChange={(e) => onChange({ ...value, users: e.target.value })}
          placeholder="ada, bob@example.com"
          autoComplete="off"
          spellCheck={false}
        />
      )}
      {props.problem && <span className="problem">{props.problem}</span>}
    </fieldset>
  );
}
