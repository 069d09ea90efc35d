package cli

import (
	"fmt"
	"io"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
)

type snowflakeCommand struct {
	Check snowflakeCheck `cmd:"" help:"Ask an account, also by small runs, whether what Loadstone assumes of it holds."`
}

type snowflakeCheck struct {
	Connection string `arg:"" help:"A saved connection, a connection string, or file:PATH of one. LOADSTONE_CHECK_… is made, and dropped."`
	Out        string `short:"o" default:"-" placeholder:"FILE" help:"Where to write the file; - is standard output (default: -)."`
	wiring.StoreFlags
}

// Run writes what was found as JSON. What does not hold is exit code 3.
func (c snowflakeCheck) Run(e *terminal.Env) error {
	if err := e.Claim(c.Out); err != nil {
		return err
	}
	a, err := openAccount(e, c.StoreFlags, "the connection", c.Connection)
	if err != nil {
		return err
	}
	defer a.Close()
	found, err := wiring.CheckAccount(e.Ctx, wiring.AccountCheck{DSN: a.DSN, Database: a.Database,
		Options:  wiring.Options{Version: version, Lease: e.Lease, PluginCache: e.PluginCache},
		Progress: func(sentence string) { _, _ = fmt.Fprintln(e.Stderr, sentence) }})
	if err != nil {
		return err
	}
	if err := e.Write(c.Out, func(w io.Writer) error { _, err := w.Write(found.Text); return err }); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(e.Stderr, found.Summary)
	if c.Out != "-" {
		_, _ = fmt.Fprintf(e.Stdout, "What was found is in %s.\n", c.Out)
	}
	if !found.Conforms {
		return &terminal.ExitError{Code: terminal.ExitThresholds}
	}
	return nil
}
