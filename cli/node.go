package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/cli/nodeadmin"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

type nodeCommand struct {
	Token  nodeTokenCommand  `cmd:"" help:"Make a token by which a node joins: loadstone worker --join."`
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
	Uses  int           `default:"1" placeholder:"N" help:"How many nodes may join with it (default: 1)."`
	Valid time.Duration `default:"1h" placeholder:"TIME" help:"How long it is good for (default: 1h)."`
	nodeFlags
}

// Run prints the token, alone, so that a program can take it.
func (c *nodeTokenCommand) Run(e *command.Env) error {
	if c.Uses < 1 {
		return engine.InvalidField("--uses", fmt.Sprintf("is %d", c.Uses), "1 or more")
	}
	if c.Valid < time.Second {
		return engine.InvalidField("--valid", fmt.Sprintf("is %s", c.Valid), "a second or more, for example 1h")
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	var made struct {
		Secret    string      `json:"secret"`
		ExpiresAt engine.Time `json:"expires_at"`
	}
	in := map[string]any{"uses": c.Uses, "valid_seconds": int(c.Valid / time.Second)}
	if err := client.do(e.Ctx, http.MethodPost, "/api/v1/node-tokens", in, &made); err != nil {
		return err
	}
	if _, err = fmt.Fprintln(e.Stdout, made.Secret); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stderr, "It lets %s join until %s:\n  LOADSTONE_JOIN=TOKEN loadstone worker --listen :9090 "+
		"--data-dir FOLDER\nServers dial a node at its address: loadstone node add HOST:9090\n",
		nodes(c.Uses), made.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"))
	return nil
}

func nodes(n int) string {
	if n == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", n)
}

type nodeAddCommand struct {
	Address string `arg:"" placeholder:"HOST:PORT" help:"The node's address, as servers reach it."`
	nodeFlags
}

func (c *nodeAddCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var added store.NodeAddress
	if err := client.do(e.Ctx, http.MethodPost, "/api/v1/node-addresses", map[string]any{"address": c.Address},
		&added); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "Servers dial %s within a few seconds.\n", added.Address)
	return err
}

type nodeListCommand struct {
	Catalog bool `xor:"list" help:"The addresses of the catalog instead, which all servers of the control store dial."`
	JSON    bool `name:"json" xor:"list" help:"As the API answers it."`
	nodeFlags
}

func (c *nodeListCommand) Run(e *command.Env) error {
	client, err := c.client()
	switch {
	case err != nil:
		return err
	case c.Catalog:
		return nodeadmin.API(client.do).Catalog(e.Ctx, e.Stdout)
	}
	return nodeadmin.API(client.do).List(e.Ctx, e.Stdout, c.JSON)
}

type nodeDrainCommand struct {
	Node string        `arg:"" help:"The node's name or address, as loadstone node list shows them."`
	Wait time.Duration `placeholder:"TIME" help:"Wait until it carries nothing any more, so long at most; exit code 2 when it does then."`
	nodeFlags
}

func (c *nodeDrainCommand) Run(e *command.Env) error {
	if c.Wait < 0 {
		return engine.InvalidField("--wait", fmt.Sprintf("is %s", c.Wait), "more than nothing, for example 5m")
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	return nodeadmin.API(client.do).Drain(e, c.Node, c.Wait)
}

type nodeResumeCommand struct {
	Node string `arg:"" help:"The node's name or address, as loadstone node list shows them."`
	nodeFlags
}

func (c *nodeResumeCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return nodeadmin.API(client.do).Resume(e, c.Node)
}

type nodeRemoveCommand struct {
	Address string `arg:"" placeholder:"HOST:PORT" help:"The node's address in the catalog."`
	nodeFlags
}

func (c *nodeRemoveCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := client.do(e.Ctx, http.MethodDelete, "/api/v1/node-addresses/"+url.PathEscape(c.Address), nil,
		nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is out of the catalog; servers let it go within a few seconds.\n", c.Address)
	return err
}

type nodeRevokeCommand struct {
	ID string `arg:"" help:"The node's name, as it says when it starts."`
	nodeFlags
}

func (c *nodeRevokeCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := client.do(e.Ctx, http.MethodPost, "/api/v1/nodes/"+url.PathEscape(c.ID)+"/revoke", map[string]any{},
		nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s was revoked. It can join again with a new token.\n", c.ID)
	return err
}
