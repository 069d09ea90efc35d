package cli

import (
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
)

// ResultsGuardCommand is loadstone results-guard.
type ResultsGuardCommand struct {
	wiring.ResultsFlags
	Dedicated bool `env:"LOADSTONE_RESULTS_GUARD_DEDICATED" help:"This Postgres serves results only: new processes are bounded from the start, otherwise after half a second."`
}

// Run supervises until a signal comes.
func (c ResultsGuardCommand) Run(e *terminal.Env) error { return c.Guard(e.Ctx, c.Dedicated, e.Log) }
