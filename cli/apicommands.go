package cli

import (
	"github.com/alecthomas/kong"
)

// serverBinder gives commands of other packages the server that its flags name.
type serverBinder struct{ nodeFlags }

// AfterApply is called by the parser, before the command.
func (a *serverBinder) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (APICall, error) { c, err := a.client(); return c.do, err })
}

type sqlCommand struct {
	SQLFlags
	serverBinder
}

type applyCommand struct {
	ApplyFlags
	serverBinder
}

type queryUserCommand struct {
	QueryUserFlags
	serverBinder
}

type tableCommand struct {
	TableCommands
	serverBinder
}

type stopCommand struct {
	StopAllCommand
	serverBinder
}

type reportCommand struct {
	ReportFlags
	tokenFlags
}

// AfterApply is called by the parser, before the command.
func (c *reportCommand) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (ServerGet, error) {
		if err := c.check(); err != nil || c.Server == "" {
			return nil, err
		}
		client, err := c.connect(c.Server)
		return client.get, err
	})
}

type markCommand struct {
	MarkFlags
	serverBinder
}

type userCommand struct {
	UserCommands
	serverBinder
}

type runsCommand struct {
	RunsCommands
	serverBinder
}

type templatesCommand struct {
	TemplatesCommands
	serverBinder
}

type connectionsCommand struct {
	ConnectionsCommands
	serverBinder
}

type schedulesCommand struct {
	SchedulesCommands
	serverBinder
}
