// This part is loadstone why: why operations of a run were slow.

package cli

import (
	"encoding/json"
	"net/url"

	"github.com/alecthomas/kong"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
)

// WhyFlags are those of the command.
type WhyFlags struct {
	ID     string `arg:"" name:"run" help:"The run's id."`
	JSON   bool   `name:"json" help:"Print all that is known as JSON, with each second of the server."`
	Server string `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Server of the run, instead of this machine's data directory."`
	wiring.StoreFlags
}

type whyCommand struct {
	WhyFlags
	tokenFlags
}

// AfterApply is called by the parser, before the command.
func (c *whyCommand) AfterApply(k *kong.Context) error {
	return k.BindSingletonProvider(func() (ServerGet, error) {
		if c.Server == "" {
			return nil, nil
		}
		client, err := c.connect(c.Server)
		return client.get, err
	})
}

// Run prints why operations were slow.
func (f *WhyFlags) Run(e *terminal.Env, read ServerGet) error {
	if err := CheckRunID(f.ID); err != nil {
		return err
	}
	v, err := f.view(e, read)
	if err != nil {
		return RunNotFound(f.ID, err)
	}
	if f.JSON {
		return report.JSON(e.Stdout, v)
	}
	return report.Why(e.Stdout, v)
}

func (f *WhyFlags) view(e *terminal.Env, read ServerGet) (v engine.ServerView, err error) {
	if read == nil {
		s, done, err := OpenDataDir(e, f.StoreFlags)
		if err != nil {
			return v, err
		}
		defer done()
		return s.Runs.ServerView(e.Ctx, f.ID)
	}
	text, err := read(e.Ctx, "/api/v1/runs/"+url.PathEscape(f.ID)+"/why")
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, &engine.Error{
			Code:    engine.CodeUnavailable,
			Message: "The server answered with something else than findings.",
			Hint:    "is this the address of a Loadstone server, of this version?",
			Cause:   err,
		}
	}
	return v, nil
}
