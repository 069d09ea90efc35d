package cli

import (
	"github.com/alecthomas/kong"
)

// asked gives commands of other packages the server that its flags name.
type asked struct{ nodeFlags }

// AfterApply is called by the parser, before the command.
func (a *asked) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (Do, error) { c, err := a.client(); return c.do, err })
}

type sqlCommand struct {
	Flags
	asked
}

type applyCommand struct {
	ApplyFlags
	asked
}

type queryUserCommand struct {
	UserFlags
	asked
}

type tableCommand struct {
	Commands
	asked
}

type stopCommand struct {
	StopAllFlags
	asked
}

type reportCommand struct {
	ReportFlags
	tokenFlags
}

// AfterApply is called by the parser, before the command.
func (c *reportCommand) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (Read, error) {
		if c.Server == "" {
			return nil, nil
		}
		client, err := c.connect(c.Server)
		return client.get, err
	})
}

type markCommand struct {
	MarkFlags
	asked
}

type userCommand struct {
	UserCommands
	asked
}
