package cli

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

type nodeCommand struct {
	Token  nodeTokenCommand  `cmd:"" help:"Create, list and end join tokens."`
	Add    nodeAddCommand    `cmd:"" help:"Add a node to the catalog, which all servers of the control store dial."`
	List   nodeListCommand   `cmd:"" help:"List nodes, or the catalog."`
	Drain  nodeDrainCommand  `cmd:"" help:"Drain a node: it finishes its work and takes nothing new."`
	Resume nodeResumeCommand `cmd:"" help:"Resume a drained or removed node."`
	Remove nodeRemoveCommand `cmd:"" help:"Remove a node from the catalog."`
	Revoke nodeRevokeCommand `cmd:"" help:"Revoke a node's certificates at once; it can join again with a new token."`
}

// nodeFlags say which server a command speaks to: one on this machine, or by its address and a
// token of the scope admin.
type nodeFlags struct {
	Server string `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Address of the server (default: the one on this machine that runs on --data-dir)."`
	tokenFlags
	operatorFlags
}

func (f nodeFlags) client() (*client, error) {
	if f.Server != "" {
		return f.connect(f.Server)
	}
	return f.operatorFlags.client()
}

type nodeTokenCommand struct {
	New  nodeTokenNewCommand  `cmd:"" default:"withargs" help:"Create a join token and print it."`
	List nodeTokenListCommand `cmd:"" help:"List valid join tokens."`
	End  nodeTokenEndCommand  `cmd:"" help:"End a join token. Joined nodes stay."`
}

type nodeTokenNewCommand struct {
	Uses  int           `default:"1" placeholder:"N" help:"How many nodes may join with it (default: 1)."`
	Valid time.Duration `default:"1h" placeholder:"TIME" help:"How long it is valid (default: 1h)."`
	nodeFlags
}

// Run prints the token, alone, so that a program can take it.
func (c *nodeTokenNewCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Token(e, c.Uses, c.Valid)
}

type nodeTokenListCommand struct{ nodeFlags }

func (c *nodeTokenListCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Tokens(e.Ctx, e.Stdout)
}

type nodeTokenEndCommand struct {
	ID string `arg:"" help:"Id shown by the list; not the secret."`
	nodeFlags
}

func (c *nodeTokenEndCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).EndToken(e, c.ID)
}

type nodeAddCommand struct {
	Address string `arg:"" placeholder:"HOST:PORT" help:"The node's address, as servers reach it."`
	nodeFlags
}

func (c *nodeAddCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Add(e, c.Address)
}

type nodeListCommand struct {
	Catalog bool `xor:"list" help:"List the addresses of the catalog instead."`
	JSON    bool `name:"json" xor:"list" help:"Print the API's JSON."`
	nodeFlags
}

func (c *nodeListCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	switch {
	case err != nil:
		return err
	case c.Catalog:
		return NodeAPI(client.do).Catalog(e.Ctx, e.Stdout)
	}
	return NodeAPI(client.do).List(e.Ctx, e.Stdout, c.JSON)
}

type nodeDrainCommand struct {
	Node string        `arg:"" help:"Name or address shown by loadstone node list."`
	Wait time.Duration `placeholder:"TIME" help:"Wait until it carries nothing, at most this long; exit code 2 otherwise."`
	nodeFlags
}

func (c *nodeDrainCommand) Run(e *terminal.Env) error {
	if c.Wait < 0 {
		return engine.InvalidField("--wait", fmt.Sprintf("is %s", c.Wait), "more than nothing, for example 5m")
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Drain(e, c.Node, c.Wait)
}

type nodeResumeCommand struct {
	Node string `arg:"" help:"Name or address shown by loadstone node list."`
	nodeFlags
}

func (c *nodeResumeCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Resume(e, c.Node)
}

type nodeRemoveCommand struct {
	Address string `arg:"" placeholder:"HOST:PORT" help:"The node's address in the catalog."`
	nodeFlags
}

func (c *nodeRemoveCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Remove(e, c.Address)
}

type nodeRevokeCommand struct {
	ID string `arg:"" help:"The node's name."`
	nodeFlags
}

func (c *nodeRevokeCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Revoke(e, c.ID)
}
