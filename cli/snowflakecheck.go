package cli

import (
	"fmt"
	"io"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
)

type snowflakeCommand struct {
	Check snowflakeCheck `cmd:"" help:"Ask an account whether some assumptions of Loadstone hold (not of load, upload and enrichment); write a file without secrets."`
}

type snowflakeCheck struct {
	Connection string `arg:"" help:"A saved connection, or a connection string. Tables named LOADSTONE_CHECK_… are made in its schema, and dropped."`
	Out        string `short:"o" default:"-" placeholder:"FILE" help:"Where to write the file; - is standard output (default: -)."`
	wiring.StoreFlags
}

// Run writes what was found as JSON.
func (c snowflakeCheck) Run(e *terminal.Env) error {
	if err := e.Claim(c.Out); err != nil {
		return err
	}
	a, err := openAccount(e, c.StoreFlags, "the connection", c.Connection)
	if err != nil {
		return err
	}
	defer a.Close()
	text, summary, err := wiring.SnowflakeConformance(e.Ctx, a.Database)
	if err != nil {
		return err
	}
	if err := e.Write(c.Out, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if c.Out != "-" {
		_, err = fmt.Fprintf(e.Stdout, "%s They are in %s.\n", summary, c.Out)
	}
	return err
}
