package derived

import (
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// SetStepHook makes d ask f at each step of taking executions in.
func (d *Database) SetStepHook(f func(step string) error) { d.stepHook = f }

// StageName is the table that a refresh of many rows gathers them in.
func StageName(table string, epoch int64) string {
	_, name := stageName(refresh.Claim{Task: refresh.Task{Table: table}, Epoch: epoch})
	return name.Sanitize()
}
