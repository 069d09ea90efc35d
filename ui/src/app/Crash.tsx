import { Component, type ReactNode } from 'react';
import { Failed } from '../design/States';
import { PageLoadError } from './PageLoadError';

interface Props {
  children: ReactNode;
  /** The page's path; a new path retries. */
  at?: string;
}

/** Crash is the error boundary of last resort; it offers a reload. */
export class Crash extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: Props) {
    if (this.state.error && before.at !== this.props.at) this.again();
  }

  private again() {
    if (this.state.error instanceof PageLoadError) this.state.error.again();
    this.setState({ error: null });
  }

  override render() {
    if (!this.state.error) return this.props.children;
    if (this.state.error instanceof PageLoadError)
      return <Failed what="The page could not be loaded." error={this.state.error} retry={() => this.again()} />;
    return (
      <div className="state" role="alert">
        <h1>This page stopped working.</h1>
        <p>Your runs continue on the server. The browser reported: {this.state.error.message}</p>
        <div className="row">
          <button type="button" className="btn primary" onClick={() => location.reload()}>
            Reload the page
          </button>
        </div>
      </div>
    );
  }
}
