import { useId } from 'react';
import { useMe } from '../api/queries';
import type { Access, AccessInput, User } from '../api/types';

/** AccessDraft is the form's state of who may use something. */
interface AccessDraft {
  restricted: boolean;
  users: string;
}

export const draftOf = (a?: Access): AccessDraft => ({
  restricted: a?.restricted ?? false,
  users: (a?.users ?? []).map((u) => u.name).join(', '),
});

/** accessInput is the request body; undefined when unchanged. */
export function accessInput(draft: AccessDraft, saved?: Access): AccessInput | undefined {
  const before = draftOf(saved);
  if (draft.restricted === before.restricted && draft.users === before.users) return undefined;
  return { restricted: draft.restricted, users: draft.users.split(/[\s,;]+/).filter((n) => n !== '') };
}

/** useIsOwner reports whether the user controls access: the owner, or an admin. */
export function useIsOwner(a?: Access): boolean {
  const me = useMe().data;
  return me?.role === 'admin' || a === undefined || (a.owner_id !== undefined && a.owner_id === me?.user_id);
}

/** accessText describes the owner and who has access. */
export function accessText(a: Access): string {
  if (!a.restricted) return a.owner ? `${a.owner}’s; all operators may use it` : 'all operators may use it';
  const users = (a.users ?? []).map((u) => u.name);
  const who = [...(a.owner ? [`its owner ${a.owner}`] : []), ...users];
  return `only ${who.length > 0 ? `${who.join(', ')} and ` : ''}admins may use it`;
}

/** canUse applies the server's rule for running something. */
export function canUse(a: Access, me: Pick<User, 'user_id' | 'role'>): boolean {
  if (me.role === 'admin') return true;
  const named = a.owner_id === me.user_id || (a.users ?? []).some((u) => u.user_id === me.user_id);
  return me.role === 'operator' && (!a.restricted || named);
}

/**
 * canEdit applies the server's rule for changing something: the owner, admins, and operators where there is no owner.
 */
export function canEdit(a: Access, me: Pick<User, 'user_id' | 'role'>): boolean {
  if (me.role !== 'operator') return me.role === 'admin';
  return a.owner_id ? a.owner_id === me.user_id : !a.restricted;
}

/** AccessFields edits who may use something. */
export function AccessFields(props: {
  saved?: Access;
  value: AccessDraft;
  onChange: (d: AccessDraft) => void;
  problem?: string;
}) {
  const id = useId();
  const owns = useIsOwner(props.saved);
  if (!owns) return <p className="muted">{props.saved && `It is ${accessText(props.saved)}.`}</p>;
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
