package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
	"github.com/loadstone-db/loadstone/plugins/trial"
)

type pluginCommand struct {
	New     pluginNew     `cmd:"" help:"Create a plugin project in one of four languages."`
	Build   pluginBuild   `cmd:"" help:"Build the plugin in a folder."`
	Inspect pluginInspect `cmd:"" help:"Show what a plugin file declares, without running a workload."`
	Test    pluginTest    `cmd:"" help:"Run the conformance suite that the server runs too."`
	Bench   pluginBench   `cmd:"" help:"Measure how fast a workload plugin generates operations."`
	Upload  pluginUpload  `cmd:"" help:"Upload a plugin file to a server, where an admin enables it."`
	List    pluginList    `cmd:"" help:"List the plugins of a server."`
	Enable  pluginEnable  `cmd:"" help:"Enable an uploaded plugin on a server."`
	Disable pluginDisable `cmd:"" help:"Disable an uploaded plugin on a server: no new run can use it."`
	Delete  pluginDelete  `cmd:"" help:"Delete an uploaded plugin from a server."`
}

type pluginInspect struct {
	File string `arg:"" help:"The .wasm file."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// inspect examines a file as a server would.
func inspect(e *terminal.Env, file []byte) (info plugin.Info, err error) {
	h, err := host.New(e.Ctx, host.Options{Log: e.Log})
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(e.Ctx))) }()
	return h.Inspect(e.Ctx, file)
}

func (c pluginInspect) Run(e *terminal.Env) error {
	file, err := terminal.ReadPlugin(c.File)
	if err != nil {
		return err
	}
	info, err := inspect(e, file)
	if err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.Stdout, info)
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintln(w, name+"\t"+terminal.Shorten(terminal.OneLine(fmt.Sprintf(format, args...)),
			10*terminal.MaxShown))
	}
	m := info.Manifest
	row("kind", "%s", m.Kind)
	row("name", "%s", m.Name)
	row("version", "%s", m.Version)
	if m.Description != "" {
		row("about", "%s", m.Description)
	}
	row("sha256", "%s", info.SHA256)
	row("size", "%d bytes", info.SizeBytes)
	row("abi", "%s", info.ABI)
	row("imports", "%s", strings.Join(info.Imports, ", "))
	if m.Driver != "" {
		row("driver", "%s, dialect %s", m.Driver, m.Dialect)
	}
	if m.Kind == plugin.KindAdapter {
		sends, what := m.Patterns(), "sends"
		if m.Sends == nil {
			what = "sends (default)"
		}
		for _, part := range []struct {
			name     string
			patterns []string
		}{{"query", sends.Query}, {"statements", sends.Statements}, {"ddl", sends.DDL}, {"session", sends.Session}} {
			for _, p := range part.patterns {
				row(what, "%s: %s", part.name, p)
			}
		}
	}
	for _, t := range m.Tables {
		columns := make([]string, len(t.Columns))
		for i, col := range t.Columns {
			columns[i] = col.Name + " " + string(col.Type)
		}
		row("table", "%s (%s), key %s", t.Name, strings.Join(columns, ", "), strings.Join(t.Key, ", "))
	}
	for _, s := range m.Statements {
		on := ""
		if s.Table != "" {
			on = " on " + s.Table
		}
		row("statement", "%s  %s%s", s.ID, s.Kind, on)
		for _, dialect := range slices.Sorted(maps.Keys(s.SQL)) {
			row("", "%s: %s", dialect, s.SQL[dialect])
		}
	}
	if len(m.Parameters) > 0 {
		var compact bytes.Buffer
		if err := json.Compact(&compact, m.Parameters); err != nil {
			return fmt.Errorf("showing the parameters: %w", err)
		}
		row("parameters", "%s", compact.String())
	}
	return w.Flush()
}

type pluginTest struct {
	File   string `arg:"" help:"The .wasm file."`
	Params string `name:"params" placeholder:"JSON" help:"The plugin's parameters, as workload.params of a template; the schema's defaults are filled in."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

func (c pluginTest) Run(e *terminal.Env) error {
	file, err := terminal.ReadPlugin(c.File)
	if err != nil {
		return err
	}
	result, err := trial.Conformance(e.Ctx, file, json.RawMessage(c.Params))
	if err != nil {
		return err
	}
	if err := examineAsUploaded(e, file, &result); err != nil {
		return err
	}
	if c.JSON {
		if err := report.JSON(e.Stdout, result); err != nil {
			return err
		}
		e.Stdout = io.Discard
	}
	failed := 0
	for _, check := range result.Checks {
		mark := "pass"
		switch {
		case check.Skipped:
			mark = "skip"
		case !check.Passed:
			mark = "FAIL"
			failed++
		}
		_, _ = fmt.Fprintf(e.Stdout, "%s  %s", mark, check.Name)
		if check.Message != "" {
			_, _ = fmt.Fprintf(e.Stdout, ": %s", terminal.Shown(check.Message))
		}
		_, _ = fmt.Fprintln(e.Stdout)
	}
	if !result.Passed {
		return &terminal.ExitError{Code: terminal.ExitUsage, Err: &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("%s does not keep the plugin contract: %d of %d checks failed.", c.File, failed,
				len(result.Checks))}}
	}
	return nil
}

// examineAsUploaded has a file that passes the suite examined once more, in the process
// that a server starts for an upload: the suite itself bounds neither the memory nor the
// time that compiling and trying a file takes. What stands in the way here skips the check.
func examineAsUploaded(e *terminal.Env, file []byte, r *trial.Report) error {
	if !r.Passed {
		return nil
	}
	guard, err := quarantine.New(quarantine.Options{Program: e.Quarantine, Log: e.Log})
	if err != nil {
		return fmt.Errorf("preparing quarantine: %w", err)
	}
	check := trial.Check{Name: "upload", Passed: true,
		Message: fmt.Sprintf("A server examines it within %d MB and %v of processor time.", quarantine.MemoryLimit>>20,
			quarantine.ProcessorLimit)}
	_, err = guard.Examine(e.Ctx, file)
	switch {
	case e.Ctx.Err() != nil:
		return err
	case errors.Is(err, plugin.ErrRefused):
		check.Passed, check.Message = false, engine.AsError(err).Message
		r.Passed = false
	case err != nil:
		check.Skipped, check.Message = true, "It could not be tried. "+engine.AsError(err).Message
	}
	r.Checks = append(r.Checks, check)
	return nil
}
