package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
)

// operatorFile is where a server leaves its address and the secret of its operator,
// readable by the server's own user alone, for as long as it runs.
const operatorFile = "operator.json"

type operator struct {
	Address string `json:"address"`
	Secret  string `json:"secret"`
}

// leaveOperator writes the file for a server that listens on address; the caller
// removes it when the server ends.
func leaveOperator(dir, address, secret string) (remove func(), err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address %s: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	text, err := json.Marshal(operator{Address: "http://" + net.JoinHostPort(host, port), Secret: secret})
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", operatorFile, err)
	}
	path := filepath.Join(dir, operatorFile)
	// A file of an earlier process may have another mode.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replacing %s: %w", operatorFile, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing %s: %w", operatorFile, err)
	}
	return func() { _ = os.Remove(path) }, nil
}

// operatorFlags say whose server a command speaks to.
type operatorFlags struct {
	DataDir string `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"The data directory of the server, on this machine (default: the system's data directory)."`
}

func (f operatorFlags) client() (*client, error) {
	dir := f.DataDir
	if dir == "" {
		dir = wiring.DefaultDataDir()
	}
	nobody := &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("No server runs on the data directory %s.", dir),
		Hint:    "start it with loadstone serve, or name its directory with --data-dir"}
	text, err := os.ReadFile(filepath.Join(dir, operatorFile)) //nolint:gosec // the user names the folder
	switch {
	case errors.Is(err, os.ErrPermission):
		return nil, &engine.Error{Code: engine.CodeForbidden,
			Message: fmt.Sprintf("The server's files in %s are not yours to read.", dir),
			Hint:    "run this as the user who runs the server", Cause: err}
	case err != nil:
		nobody.Cause = err
		return nil, nobody
	}
	var o operator
	if err := json.Unmarshal(text, &o); err != nil || o.Address == "" {
		nobody.Cause = err
		return nil, nobody
	}
	return newClient(o.Address, o.Secret)
}

type signinCommand struct{ operatorFlags }

// Run prints a link that signs a browser in.
func (c *signinCommand) Run(e *command.Env) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var link struct {
		URL string `json:"url"`
	}
	if err := client.do(e.Ctx, http.MethodPost, "/api/auth/signin-links", map[string]any{}, &link); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s\n", link.URL)
	if err == nil {
		_, err = fmt.Fprintln(e.Stderr, "It signs you in once, within an hour; links made before it do not work any more.")
	}
	return err
}

type tokenCommand struct {
	Name  string `arg:"" help:"What the token is for."`
	Scope string `enum:"read,write,admin" default:"write" help:"What it may do: ${enum}. Only admin makes and revokes tokens."`
	Days  int    `default:"90" help:"After how many days it expires."`
	operatorFlags
}

// longestToken is the most days that the server gives a token.
const longestToken = 3650

// Run makes a token and prints its secret, alone, so that a program can take it.
func (c *tokenCommand) Run(e *command.Env) error {
	if c.Days < 1 || c.Days > longestToken {
		return engine.InvalidField("--days", fmt.Sprintf("is %d", c.Days), fmt.Sprintf("from 1 to %d", longestToken))
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	var made struct {
		Secret string `json:"secret"`
	}
	in := map[string]any{"name": c.Name, "scope": c.Scope, "expires_in_days": c.Days}
	if err := client.do(e.Ctx, http.MethodPost, "/api/auth/tokens", in, &made); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Stdout, made.Secret)
	return err
}
