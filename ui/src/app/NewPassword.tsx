import { useId, useState } from 'react';

/** The least characters of a password, as the server has them. */
export const leastPassword = 12;

/** Says of a password that is being typed what is still wrong with it; '' when nothing is that the page can tell. */
export function passwordLacks(password: string): string {
  const n = [...password].length;
  if (n === 0) return '';
  return n < leastPassword ? `${leastPassword - n} more ${leastPassword - n === 1 ? 'character' : 'characters'}` : '';
}

/** The field in which a new password is chosen: one, that can be looked at. */
export function NewPassword({ value, onChange }: { value: string; onChange: (v: string) => void }) {
  const id = useId();
  const [shown, setShown] = useState(false);
  const lacks = passwordLacks(value);
  return (
    <div className="field">
      <label className="label" htmlFor={id}>
        New password
      </label>
      <div className="row nowrap">
        <input
          id={id}
          type={shown ? 'text' : 'password'}
          className="input grow"
          autoComplete="new-password"
          autoCapitalize="none"
          spellCheck={false}
          value={value}
          onChange={(e) => onChange(e.target.value)}
          aria-describedby={`${id}-help`}
          required
        />
        <button type="button" className="btn" aria-pressed={shown} onClick={() => setShown(!shown)}>
          {shown ? 'Hide' : 'Show'}
        </button>
      </div>
      <span className="help" id={`${id}-help`} role="status">
        {lacks || `At least ${leastPassword} characters; several words do well.`}
      </span>
    </div>
  );
}
