package cli

import (
	"fmt"
	"net/http"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// operatorFlags say whose server a command speaks to.
type operatorFlags struct {
	DataDir string `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"Data directory of the server on this machine (default: the system's data directory)."`
}

func (f operatorFlags) client() (*client, error) {
	dir := f.DataDir
	if dir == "" {
		dir = wiring.DefaultDataDir()
	}
	o, err := ReadOperator(dir)
	if err != nil {
		return nil, err
	}
	c, err := newClient(o.Address, secret.New(o.Secret))
	if err == nil {
		c.http.Transport = o.Transport()
	}
	return c, err
}

type signinCommand struct{ operatorFlags }

// Run prints a link that signs a browser in.
func (c *signinCommand) Run(e *terminal.Env) error {
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
	Name  string `arg:"" help:"Name of the token."`
	Scope string `enum:"read,run,metrics,write,admin" default:"write" help:"Scope: ${enum}. run also starts and stops runs; metrics only reads metrics; only admin manages tokens."`
	Days  int    `default:"90" help:"Days until it expires."`
	operatorFlags
}

// maxTokenDays is the most days that the server gives a token.
const maxTokenDays = 3650

// Run makes a token and prints its secret, alone, so that a program can take it.
func (c *tokenCommand) Run(e *terminal.Env) error {
	if c.Days < 1 || c.Days > maxTokenDays {
		return engine.InvalidField("--days", fmt.Sprintf("is %d", c.Days), fmt.Sprintf("from 1 to %d", maxTokenDays))
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
