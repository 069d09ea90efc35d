// This part is loadstone mark: it notes a moment of a run on a server.

package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// MarkFlags are those of loadstone mark.
type MarkFlags struct {
	RunID string        `arg:"" name:"run" help:"Id of the run."`
	Text  string        `arg:"" help:"What happened, such as \"index created\"."`
	Ago   time.Duration `help:"How long ago it happened, such as 90s (default: now)."`
}

// Run marks the moment in the run.
func (f MarkFlags) Run(e *terminal.Env, do APICall) error {
	if f.Ago < 0 {
		return engine.InvalidField("ago", "lies in the future", "name how long ago it happened, such as 90s")
	}
	in := map[string]any{"text": f.Text}
	if f.Ago > 0 {
		in["at"] = time.Now().Add(-f.Ago).UTC().Format(time.RFC3339Nano)
	}
	var made engine.Mark
	if err := do(e.Ctx, http.MethodPost, "/api/v1/runs/"+url.PathEscape(f.RunID)+"/marks", in, &made); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s\t%s\n", made.At.Format(engine.TimeLayout), terminal.Shown(made.Text))
	return err
}
