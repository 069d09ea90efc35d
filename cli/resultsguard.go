package cli

import (
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
)

// ResultsGuardCommand is loadstone results-guard.
type ResultsGuardCommand struct {
	wiring.ResultsFlags
	Dedicated bool `env:"LOADSTONE_RESULTS_GUARD_DEDICATED" help:"The Postgres serves results alone: new processes are bounded from their first moment, until it is known whose they are. Without it a reader's memory is not bounded in its first half second."`
}

// Run supervises until a signal comes.
func (c ResultsGuardCommand) Run(e *terminal.Env) error { return c.Guard(e.Ctx, c.Dedicated, e.Log) }
