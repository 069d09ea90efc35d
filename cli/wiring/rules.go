package wiring

import (
	"cmp"
	"context"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// RuleOptions are what the rules of runs are made of.
type RuleOptions struct {
	Egress *egress.Policy
	// Open returns the address of a rule whose address is sealed.
	Open func(context.Context, engine.Rule) (secret.Secret, error)
	// Executions are those of run workers of this process, Account is what reading them takes of it.
	Executions *executions.Fanout
	Account    *system.Account
	// Memory is what rules may hold, with the queries of the process.
	Memory memory.Limits
	// Fragments leads to the nodes of the cluster.
	Fragments FragmentNodes
	Log       zerolog.Logger
}

// OpenRules begins the rules of runs.
func OpenRules(o RuleOptions) rules.StartFunc {
	webhook := func(ctx context.Context, r engine.Rule, columns []column.Column, tell connector.AlertFunc) (
		connector.Sink, error) {
		url, err := o.Open(ctx, r)
		if err != nil {
			return nil, err
		}
		return connector.NewWebhook(ctx, url, columns, o.Egress, tell)
	}
	return func(run engine.Run) *rules.Set {
		return rules.Start(
			run.Scenario.Rules,
			run.Rules,
			rules.Options{
				Webhook:    webhook,
				RunID:      run.RunID,
				Owner:      cmp.Or(run.CreatedByID, run.CreatedBy),
				Node:       protocol.OwnNode,
				Executions: o.Executions,
				Account:    o.Account,
				Memory:     o.Memory,
				Nodes:      o.Fragments,
				Log:        o.Log.With().Str("run_id", run.RunID).Logger(),
			},
		)
	}
}
