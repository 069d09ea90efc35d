package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// serverFlags name the server that a command speaks to.
type serverFlags struct {
	Server string `required:"" placeholder:"URL" env:"LOADSTONE_SERVER" help:"The server, for example http://127.0.0.1:8080."`
	tokenFlags
}

type (
	pluginUpload struct {
		File   string `arg:"" help:"The .wasm file."`
		Enable bool   `help:"Also enable it; needs an admin's token."`
		serverFlags
	}
	pluginList struct {
		JSON bool `name:"json" help:"Print JSON."`
		serverFlags
	}
	pluginEnable  struct{ pluginRefArg }
	pluginDisable struct{ pluginRefArg }
	pluginDelete  struct{ pluginRefArg }

	pluginRefArg struct {
		Plugin string `arg:"" help:"name, name@version, or SHA-256."`
		serverFlags
	}
)

func (c pluginUpload) Run(e *terminal.Env) error {
	file, err := terminal.ReadPlugin(c.File)
	if err != nil {
		return err
	}
	client, err := c.connect(c.Server)
	if err != nil {
		return err
	}
	// The file travels, and then waits its turn in quarantine.
	client.http.Timeout = uploadTimeout
	var p plugin.Entry
	if err := client.send(e.Ctx, http.MethodPost, "/api/plugins", "application/wasm", bytes.NewReader(file),
		&p); err != nil {
		return err
	}
	if c.Enable && !p.Enabled {
		if err := client.do(e.Ctx, http.MethodPost, "/api/plugins/"+p.SHA256+"/enable", nil, &p); err != nil {
			return err
		}
	}
	return c.say(e.Stdout, p, client.base)
}

func (c pluginUpload) say(w io.Writer, p plugin.Entry, base string) error {
	_, err := fmt.Fprintf(w, "%s@%s is on the server, %s.\n  sha256  %s\n  page    %s/plugins?plugin=%s\n", p.Name,
		p.Version, p.State, p.SHA256, base, p.SHA256)
	if err == nil && p.State == plugin.StateDisabled {
		// By its hash: until it is enabled, another file can take the place of this version.
		_, err = fmt.Fprintf(w, "An admin enables it on that page, or with: loadstone plugin enable %s\n", p.SHA256)
	}
	return err
}

func (c pluginList) Run(e *terminal.Env) error {
	client, err := c.connect(c.Server)
	if err != nil {
		return err
	}
	var list struct {
		Plugins []plugin.Entry `json:"plugins"`
	}
	if err := client.do(e.Ctx, http.MethodGet, "/api/plugins", nil, &list); err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.Stdout, list.Plugins)
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "PLUGIN\tKIND\tSTATE\tORIGIN\tTEMPLATES\tSHA-256")
	for _, p := range list.Plugins {
		_, _ = fmt.Fprintf(w, "%s@%s\t%s\t%s\t%s\t%d\t%.12s\n", p.Name, p.Version, p.Kind, p.State, p.Origin,
			len(p.Templates), p.SHA256)
	}
	return w.Flush()
}

// Run enables what is named. A name may mean several files that wait, and an approval
// is of one file: then it says which there are, and asks for the hash.
func (c pluginEnable) Run(e *terminal.Env) error {
	client, err := c.connect(c.Server)
	if err != nil {
		return err
	}
	var list struct {
		Plugins []plugin.Entry `json:"plugins"`
	}
	if err := client.do(e.Ctx, http.MethodGet, "/api/plugins", nil, &list); err != nil {
		return err
	}
	var waiting []plugin.Entry
	for _, p := range list.Plugins {
		if !p.Enabled && (p.Name == c.Plugin || p.Name+"@"+p.Version == c.Plugin) {
			waiting = append(waiting, p)
		}
	}
	switch len(waiting) {
	case 0: // a hash, or what is enabled already, or nothing: the server says
	case 1:
		c.Plugin = waiting[0].SHA256
	default:
		var b strings.Builder
		fmt.Fprintf(&b, "%d plugins called %s wait to be enabled:", len(waiting), terminal.OneLine(c.Plugin))
		for _, p := range waiting {
			fmt.Fprintf(&b, "\n  %s@%s  sha256 %s", terminal.OneLine(p.Name), terminal.OneLine(p.Version), p.SHA256)
		}
		return &engine.Error{Code: engine.CodeConflict, Message: b.String(),
			Hint: "say which: loadstone plugin enable SHA-256"}
	}
	return c.change(e, http.MethodPost, "/enable", "enabled")
}

func (c pluginDisable) Run(e *terminal.Env) error {
	return c.change(e, http.MethodPost, "/disable", "disabled")
}
func (c pluginDelete) Run(e *terminal.Env) error {
	return c.change(e, http.MethodDelete, "", "deleted")
}

func (c pluginRefArg) change(e *terminal.Env, method, verb, done string) error {
	client, err := c.connect(c.Server)
	if err != nil {
		return err
	}
	var p plugin.Entry
	var answer any = &p
	if method == http.MethodDelete {
		answer = nil // there is nothing left to say about it
	}
	if err := client.do(e.Ctx, method, "/api/plugins/"+url.PathEscape(c.Plugin)+verb, nil, answer); err != nil {
		return err
	}
	message := c.Plugin
	if p.Name != "" {
		// A bare name means one of several versions.
		message = p.Name + "@" + p.Version
	}
	if _, err = fmt.Fprintf(e.Stdout, "%s is %s.\n", terminal.OneLine(message), done); err == nil && p.SHA256 != "" {
		_, err = fmt.Fprintf(e.Stdout, "  sha256  %s\n", p.SHA256)
	}
	if err != nil || done != "enabled" || p.Manifest.Kind != plugin.KindAdapter {
		return err
	}
	// What was approved with it.
	sends := p.Manifest.Patterns()
	for _, part := range []struct {
		name     string
		patterns []string
	}{{"query", sends.Query}, {"statements", sends.Statements}, {"ddl", sends.DDL}, {"session", sends.Session}} {
		for _, text := range part.patterns {
			if _, err = fmt.Fprintf(e.Stdout, "  may send %s: %s\n", part.name, terminal.OneLine(text)); err != nil {
				return err
			}
		}
	}
	return nil
}
