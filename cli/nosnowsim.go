//go:build nosnowflake

package cli

import (
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
)

// snowsimCommand says that this build has no stand-in, whatever is asked of it.
type snowsimCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" hidden:""`
}

func (*snowsimCommand) Run(*terminal.Env) error { return wiring.ErrNoSnowflake }
