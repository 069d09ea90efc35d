package cli

import (
	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/cli/sqlshell"
)

type sqlCommand struct {
	sqlshell.Flags
	nodeFlags
}

func (c *sqlCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.Ask(e, client.do)
}

type queryUserCommand struct {
	sqlshell.UserFlags
	nodeFlags
}

func (c *queryUserCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.Make(e, client.do)
}
