package feeds

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/reach"
	"github.com/loadstone-db/loadstone/engine/rule"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
	"github.com/loadstone-db/loadstone/engine/stream/outlet"
)

// Rules begins the rules of runs. open returns the address of a rule whose address is sealed.
func Rules(policy *reach.Policy, open func(context.Context, engine.Rule) (string, error),
	log zerolog.Logger) rule.Begin {
	webhook := func(ctx context.Context, r engine.Rule, columns []column.Column, tell outlet.Tell) (feed.Sink, error) {
		url, err := open(ctx, r)
		if err != nil {
			return nil, err
		}
		return outlet.Webhook(ctx, feed.Config{"SINK.URL": url}, columns, policy, tell)
	}
	return func(run engine.Run) *rule.Set {
		return rule.Start(run.Scenario.Rules, run.Rules,
			rule.Options{Webhook: webhook, Log: log.With().Str("run_id", run.RunID).Logger()})
	}
}
