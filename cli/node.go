package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

type nodeCommand struct {
	Token  nodeTokenCommand  `cmd:"" help:"Make a token by which a node joins: loadstone worker --join."`
	Add    nodeAddCommand    `cmd:"" help:"Add a node to the catalog: all servers of the control store dial it."`
	List   nodeListCommand   `cmd:"" help:"List the catalog of nodes."`
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

type nodeListCommand struct{ nodeFlags }

func (c *nodeListCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var list struct {
		Addresses []store.NodeAddress `json:"addresses"`
	}
	if err := client.do(e.Ctx, http.MethodGet, "/api/v1/node-addresses", nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ADDRESS\tADDED BY\tADDED AT")
	for _, a := range list.Addresses {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", a.Address, a.AddedBy, a.AddedAt.UTC().Format(time.RFC3339))
	}
	return w.Flush()
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
