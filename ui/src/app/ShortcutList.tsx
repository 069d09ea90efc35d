import { Dialog } from '../design/Dialog';
import { jumps } from './Shortcuts';

/** ShortcutList is the help for the keyboard. */
export default function ShortcutList({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="keys">
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>Find runs, templates, connections, pages and actions</dd>
        </div>
        {Object.entries(jumps).map(([k, [, name]]) => (
          <div key={k}>
            <dt>
              <kbd>g</kbd> <kbd>{k}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>Search the list on this page</dd>
        </div>
        <div>
          <dt>
            <kbd>n</kbd>
          </dt>
          <dd>Create a new item</dd>
        </div>
        <div>
          <dt>
            <kbd>j</kbd> <kbd>k</kbd>
          </dt>
          <dd>Move in a list; Enter opens</dd>
        </div>
        <div>
          <dt>
            <kbd>x</kbd>
          </dt>
          <dd>Select a row</dd>
        </div>
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>S</kbd>
          </dt>
          <dd>Save the template</dd>
        </div>
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>Save the template and run it</dd>
        </div>
        <div>
          <dt>
            <kbd>m</kbd>
          </dt>
          <dd>Add a mark to a run</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>Show the shortcuts</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close</dd>
        </div>
        <div>
          <dt>
            <kbd>←</kbd> <kbd>→</kbd>
          </dt>
          <dd>Read the focused chart; Home, End, Enter for executions, + − 0 to zoom</dd>
        </div>
        <div>
          <dt>drag</dt>
          <dd>Zoom all charts; double-click resets</dd>
        </div>
      </dl>
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
