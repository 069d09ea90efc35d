package cli

import (
	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli/handreport"
	"github.com/loadstone-db/loadstone/cli/mark"
	"github.com/loadstone-db/loadstone/cli/sqlshell"
	"github.com/loadstone-db/loadstone/cli/stopall"
	"github.com/loadstone-db/loadstone/cli/tableadmin"
	"github.com/loadstone-db/loadstone/cli/useradmin"
)

// asked gives commands of other packages the server that its flags name.
type asked struct{ nodeFlags }

// AfterApply is called by the parser, before the command.
func (a *asked) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (sqlshell.Do, error) { c, err := a.client(); return c.do, err })
}

type sqlCommand struct {
	sqlshell.Flags
	asked
}

type applyCommand struct {
	sqlshell.ApplyFlags
	asked
}

type queryUserCommand struct {
	sqlshell.UserFlags
	asked
}

type tableCommand struct {
	tableadmin.Commands
	asked
}

type stopCommand struct {
	stopall.Flags
	asked
}

type reportCommand struct {
	handreport.Flags
	tokenFlags
}

// AfterApply is called by the parser, before the command.
func (c *reportCommand) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (handreport.Read, error) {
		if c.Server == "" {
			return nil, nil
		}
		client, err := c.connect(c.Server)
		return client.get, err
	})
}

type markCommand struct {
	mark.Flags
	asked
}

type userCommand struct {
	useradmin.Commands
	asked
}
