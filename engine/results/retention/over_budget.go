package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// OverBudget is by how much single executions are above the budget although all has gone that may.
type OverBudget struct {
	Bytes int64       `json:"over_budget_bytes" doc:"By how much executions are above the budget, because pinned and young runs stay; of the last look, on any server."`
	Since engine.Time `json:"over_budget_since" doc:"Since when they are; null while they are not."`
}

const overBudgetSetting = "retention.over"

// OverBudget is what the last look found, on any server; nothing without a budget.
func (k *Janitor) OverBudget(ctx context.Context, r Rules) (OverBudget, error) {
	if !r.Enabled || r.BudgetGB <= 0 {
		return OverBudget{}, nil
	}
	over, _, err := k.readOverBudget(ctx)
	return over, err
}

func (k *Janitor) readOverBudget(ctx context.Context) (over OverBudget, version int64, err error) {
	v, err := k.o.Store.Setting(ctx, overBudgetSetting)
	if err != nil || v.Version == 0 {
		return over, v.Version, err
	}
	if err := json.Unmarshal(v.Value, &over); err != nil {
		return over, v.Version, fmt.Errorf("reading by how much executions are above their budget: %w", err)
	}
	return over, v.Version, nil
}

// saveOverBudget keeps what a look has found, also where nothing can go, and logs when that begins and when it ends.
// While retention is off nothing is above a budget, which is no news for the log.
func (k *Janitor) saveOverBudget(ctx context.Context, plan Plan, now time.Time, on bool) error {
	before, version, err := k.readOverBudget(ctx)
	if err != nil || before.Bytes == plan.Over {
		return err
	}
	over := OverBudget{Bytes: plan.Over, Since: before.Since}
	switch {
	case plan.Over == 0:
		over.Since = engine.Time{}
	case before.Bytes == 0:
		over.Since = engine.At(now)
	}
	text, err := json.Marshal(over)
	if err != nil {
		return fmt.Errorf("writing by how much executions are above their budget: %w", err)
	}
	if _, err := k.o.Store.SaveSetting(ctx, store.Setting{Name: overBudgetSetting, Value: text, Version: version,
		UpdatedBy: k.o.Owner}); err != nil {
		return err
	}
	switch {
	case !on:
	case plan.Over == 0:
		k.o.Log.Info().Msg("single executions are within their budget again")
	case before.Bytes == 0:
		k.o.Log.Warn().Int64("over_budget_bytes", plan.Over).
			Msg("single executions are above their budget, and what is left of them stays: pinned and young runs are kept")
	}
	return nil
}
