package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	nodeTokensPath    = "/api/v1/node-tokens" //nolint:gosec // names and columns, no secret
	nodeAddressesPath = "/api/v1/node-addresses"
)

// Token makes a token by which nodes join, and prints it alone, so that a program can take it.
func (ask NodeAPI) Token(e *terminal.Env, uses int, valid time.Duration) error {
	if uses < 1 {
		return engine.InvalidField("--uses", fmt.Sprintf("is %d", uses), "1 or more")
	}
	if valid < time.Second {
		return engine.InvalidField("--valid", fmt.Sprintf("is %s", valid), "a second or more, for example 1h")
	}
	var made struct {
		TokenID   string      `json:"token_id"`
		Secret    string      `json:"secret"`
		ExpiresAt engine.Time `json:"expires_at"`
	}
	in := map[string]any{"uses": uses, "valid_seconds": int(valid / time.Second)}
	if err := ask(e.Ctx, http.MethodPost, nodeTokensPath, in, &made); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(e.Stdout, made.Secret); err != nil {
		return err
	}
	who := "one node"
	if uses > 1 {
		who = fmt.Sprintf("%d nodes", uses)
	}
	_, _ = fmt.Fprintf(e.Stderr, "It lets %s join until %s:\n  LOADSTONE_JOIN=TOKEN loadstone worker --listen :9090 "+
		"--data-dir FOLDER\nServers dial a node at its address: loadstone node add HOST:9090\nTo end it before: "+
		"loadstone node token end %s\n", who, made.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"), nodeCell(made.TokenID))
	return nil
}

// Tokens writes the tokens by which nodes can join now.
func (ask NodeAPI) Tokens(ctx context.Context, out io.Writer) error {
	var list struct {
		Tokens []store.NodeToken `json:"tokens"`
	}
	if err := ask(ctx, http.MethodGet, nodeTokensPath, nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TOKEN\tUSED\tMADE BY\tMADE AT\tGOOD UNTIL")
	for _, t := range list.Tokens {
		_, _ = fmt.Fprintf(w, "%s\t%d of %d\t%s\t%s\t%s\n", nodeCell(t.TokenID), t.Used, t.Uses, nodeCell(t.CreatedBy),
			t.CreatedAt.UTC().Format(time.RFC3339), t.ExpiresAt.UTC().Format(time.RFC3339))
	}
	return w.Flush()
}

// EndToken has nobody join by a token any more.
func (ask NodeAPI) EndToken(e *terminal.Env, id string) error {
	if err := ask(e.Ctx, http.MethodDelete, nodeTokensPath+"/"+url.PathEscape(id), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout,
		"Nobody joins by %s any more. Nodes that have joined by it stay: loadstone node revoke "+
			"ends those.\n", nodeCell(id))
	return err
}

// Add puts an address into the catalog.
func (ask NodeAPI) Add(e *terminal.Env, address string) error {
	var added store.NodeAddress
	if err := ask(e.Ctx, http.MethodPost, nodeAddressesPath, map[string]any{"address": address}, &added); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "Servers dial %s within a few seconds.\n", added.Address)
	return err
}

// Remove takes an address out of the catalog.
func (ask NodeAPI) Remove(e *terminal.Env, address string) error {
	if err := ask(e.Ctx, http.MethodDelete, nodeAddressesPath+"/"+url.PathEscape(address), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s is out of the catalog; servers let it go within a few seconds.\n", address)
	return err
}

// Revoke ends the certificates of a node.
func (ask NodeAPI) Revoke(e *terminal.Env, id string) error {
	if err := ask(e.Ctx, http.MethodPost, nodesPath+"/"+url.PathEscape(id)+"/revoke", map[string]any{}, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s was revoked. It can join again with a new token.\n", id)
	return err
}
