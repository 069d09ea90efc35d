package feeds

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/rule"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
	"github.com/loadstone-db/loadstone/engine/stream/outlet"
	"github.com/loadstone-db/loadstone/engine/stream/telemetry"
)

// RuleOptions are what the rules of runs are made of.
type RuleOptions struct {
	Reach *egress.Policy
	// Open returns the address of a rule whose address is sealed.
	Open func(context.Context, engine.Rule) (string, error)
	// Executions are those of run workers of this process, Account is what reading them takes of it.
	Executions *executions.Exchange
	Account    *telemetry.Account
	// Fragments leads to the nodes of the cluster.
	Fragments Nodes
	Log       zerolog.Logger
}

// Rules begins the rules of runs.
func Rules(o RuleOptions) rule.Begin {
	webhook := func(ctx context.Context, r engine.Rule, columns []column.Column, tell outlet.Tell) (feed.Sink, error) {
		url, err := o.Open(ctx, r)
		if err != nil {
			return nil, err
		}
		return outlet.Webhook(ctx, feed.Config{"SINK.URL": url}, columns, o.Reach, tell)
	}
	return func(run engine.Run) *rule.Set {
		return rule.Start(run.Scenario.Rules, run.Rules,
			rule.Options{Webhook: webhook, RunID: run.RunID, Node: protocol.OwnNode, Executions: o.Executions,
				Account: o.Account, Nodes: o.Fragments, Log: o.Log.With().Str("run_id", run.RunID).Logger()})
	}
}
