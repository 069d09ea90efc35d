import { Component, type ReactNode } from 'react';
import { Failed } from './States';

interface Props {
  /** What the card shows, for the message. */
  title: string;
  children: ReactNode;
}

/** CardBoundary keeps an error of one card from taking the page with it. Retrying draws the card again. */
export class CardBoundary extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <section className="panel" aria-label={this.props.title}>
        <Failed
          what={`“${this.props.title}” could not be shown.`}
          error={this.state.error}
          retry={() => this.setState({ error: null })}
        />
      </section>
    );
  }
}
