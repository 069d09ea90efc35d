package cli

import (
	"os"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
)

// quarantineCommand is the child process of package quarantine; nobody types it.
type quarantineCommand struct{}

func (quarantineCommand) Run(e *terminal.Env) error {
	if code := quarantine.Child(os.Stdin, e.Stdout); code != 0 {
		return &terminal.ExitError{Code: code}
	}
	return nil
}
