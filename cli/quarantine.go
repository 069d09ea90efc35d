package cli

import (
	"os"

	"github.com/loadstone-db/loadstone/plugins/quarantine"
)

// quarantineCommand is the child process of package quarantine; nobody types it.
type quarantineCommand struct{}

func (quarantineCommand) Run(e *env) error {
	if code := quarantine.Child(os.Stdin, e.stdout); code != 0 {
		return &exitError{code: code}
	}
	return nil
}
