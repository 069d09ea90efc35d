import { CopyButton } from './Controls';
import { Dialog } from './Dialog';
import { Notice } from './States';

/** ShownOnce shows a new secret once, with a copy button. */
export function ShownOnce({
  title,
  text,
  copy,
  wide,
  onClose,
  children,
}: {
  title: string;
  text: string;
  /** Label of the copy button. */
  copy: string;
  wide?: boolean;
  onClose: () => void;
  children?: React.ReactNode;
}) {
  return (
    <Dialog title={title} wide={wide} onClose={onClose}>
      <Notice tone="warn">
        <strong>Copy it now.</strong> The server stores only its hash, so it cannot be shown again.
      </Notice>
      {children}
      <div className="row nowrap">
        <pre className="code grow">{text}</pre>
        <CopyButton text={text} label={copy} />
      </div>
      <div className="actions">
        <button type="button" className="btn primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}
