import { Component, type ReactNode } from 'react';

/** The last line of defence: a page that breaks says so, and can be loaded again. */
export class Crash extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="state" role="alert">
        <h1>This page broke.</h1>
        <p>Your runs are not affected: they live on the server. The browser reported: {this.state.error.message}</p>
        <div className="row">
          <button type="button" className="btn primary" onClick={() => location.reload()}>
            Load the page again
          </button>
        </div>
      </div>
    );
  }
}
