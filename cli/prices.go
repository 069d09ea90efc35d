package cli

import (
	"fmt"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/results/cost"
)

// pricesCommand prints the price list that comes with Loadstone.
type pricesCommand struct{}

// Help is shown by --help.
func (*pricesCommand) Help() string {
	return `Put your own prices in on the page Settings, for all servers; or save it as prices.yaml in the data directory, or name
it with --prices, which comes before the page:

  loadstone prices > prices.yaml

Costs follow the list as it is when they are shown; a change needs no restart.`
}

func (*pricesCommand) Run(e *terminal.Env) error {
	if _, err := e.Stdout.Write(cost.Embedded()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
