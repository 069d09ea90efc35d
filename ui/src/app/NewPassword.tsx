import { useId, useState } from 'react';

/** minPasswordLength is the server's minimum. */
const minPasswordLength = 12;

/** passwordProblem says what is still wrong with a password being typed; '' when the page finds nothing. */
export function passwordProblem(password: string): string {
  const n = [...password].length;
  if (n === 0) return '';
  return n < minPasswordLength
    ? `${minPasswordLength - n} more ${minPasswordLength - n === 1 ? 'character' : 'characters'}`
    : '';
}

/** NewPassword is a password field with a show button. */
export function NewPassword({ value, onChange }: { value: string; onChange: (v: string) => void }) {
  const id = useId();
  const [shown, setShown] = useState(false);
  const problem = passwordProblem(value);
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
        {problem || `At least ${minPasswordLength} characters. A few random words work well.`}
      </span>
    </div>
  );
}
