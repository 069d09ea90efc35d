package cli

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

type nodeCommand struct {
	Token  nodeTokenCommand  `cmd:"" help:"Tokens by which nodes join with loadstone worker --join: made, listed, ended."`
	Add    nodeAddCommand    `cmd:"" help:"Add a node to the catalog: all servers of the control store dial it."`
	List   nodeListCommand   `cmd:"" help:"List the nodes that a server knows, or the catalog."`
	Drain  nodeDrainCommand  `cmd:"" help:"Have a node end what it carries and take nothing new."`
	Resume nodeResumeCommand `cmd:"" help:"Let a node take work again that was drained or removed."`
	Remove nodeRemoveCommand `cmd:"" help:"Take a node out of the catalog."`
	Revoke nodeRevokeCommand `cmd:"" help:"Revoke the certificates of a node: it is cut off at once, and can join again with a new token."`
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
	New  nodeTokenNewCommand  `cmd:"" default:"withargs" help:"Make a token by which a node joins, and print it."`
	List nodeTokenListCommand `cmd:"" help:"List the tokens by which nodes can join now."`
	End  nodeTokenEndCommand  `cmd:"" help:"End a token: nobody joins by it any more. Nodes that have joined stay."`
}

type nodeTokenNewCommand struct {
	Uses  int           `default:"1" placeholder:"N" help:"How many nodes may join with it (default: 1)."`
	Valid time.Duration `default:"1h" placeholder:"TIME" help:"How long it is good for (default: 1h)."`
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
	ID string `arg:"" help:"The token's name, as the list shows it; it is not the secret."`
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
	Catalog bool `xor:"list" help:"The addresses of the catalog instead, which all servers of the control store dial."`
	JSON    bool `name:"json" xor:"list" help:"As the API answers it."`
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
	Node string        `arg:"" help:"The node's name or address, as loadstone node list shows them."`
	Wait time.Duration `placeholder:"TIME" help:"Wait until it carries nothing any more, so long at most; exit code 2 when it does then."`
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
	Node string `arg:"" help:"The node's name or address, as loadstone node list shows them."`
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
	ID string `arg:"" help:"The node's name, as it says when it starts."`
	nodeFlags
}

func (c *nodeRevokeCommand) Run(e *terminal.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return NodeAPI(client.do).Revoke(e, c.ID)
}
