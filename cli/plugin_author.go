package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/author"
	"github.com/loadstone-db/loadstone/plugins/bundled"
	"github.com/loadstone-db/loadstone/plugins/trial"
)

type pluginNew struct {
	Name     string `arg:"" help:"The plugin's name: lower-case letters, digits, '-' and '_'."`
	Language string `short:"l" required:"" placeholder:"LANGUAGE" help:"go, c, assemblyscript or rust."`
	Dir      string `placeholder:"DIR" help:"The project's folder (default: NAME)."`
}

func (c pluginNew) Run(e *terminal.Env) error {
	dir := c.Dir
	if dir == "" {
		dir = c.Name
	}
	infos, err := bundled.Infos()
	if err != nil {
		return err
	}
	for _, i := range infos {
		if i.Name == c.Name {
			return engine.InvalidField("NAME", fmt.Sprintf("%q is the name of a plugin that comes with Loadstone", c.Name),
				"choose another")
		}
	}
	files, err := author.New(dir, c.Language, c.Name)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Stdout, "%s holds a plugin in %d files. Next:\n  cd %s\n", dir, len(files), dir)
	if c.Language == "assemblyscript" {
		_, _ = fmt.Fprintln(e.Stdout, "  npm install")
	}
	// Build names the module after the folder.
	_, err = fmt.Fprintf(e.Stdout, "  loadstone plugin build\n  loadstone plugin test %s.wasm\n", filepath.Base(dir))
	return err
}

type pluginBuild struct {
	Dir  string `arg:"" optional:"" default:"." help:"The project's folder."`
	JSON bool   `name:"json" help:"Print JSON."`
}

func (c pluginBuild) Run(e *terminal.Env) error {
	out, err := author.Build(e.Ctx, c.Dir)
	if err != nil {
		return err
	}
	file, err := terminal.ReadPlugin(out)
	if err != nil {
		return err
	}
	// What no server would take shall be said now.
	info, err := inspect(e, file)
	if err != nil {
		return terminal.PluginError(out, err)
	}
	if c.JSON {
		return report.JSON(e.Stdout, struct {
			File string `json:"file"`
			plugin.Info
		}{out, info})
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is %s %s, %d bytes.\n", out, info.Name, info.Version, info.SizeBytes)
	return err
}

type pluginBench struct {
	File     string        `arg:"" help:"The .wasm file."`
	Params   string        `name:"params" placeholder:"JSON" help:"The plugin's parameters, as workload.params of a template; the schema's defaults are filled in."`
	Duration time.Duration `default:"2s" help:"How long to measure."`
	JSON     bool          `name:"json" help:"Print JSON."`
}

func (c pluginBench) Run(e *terminal.Env) error {
	if c.Duration < 10*time.Millisecond || c.Duration > 10*time.Minute {
		return engine.InvalidField("--duration", fmt.Sprintf("%s is not a time to measure for", c.Duration), "10ms to 10m")
	}
	file, err := terminal.ReadPlugin(c.File)
	if err != nil {
		return err
	}
	f, err := trial.Bench(e.Ctx, file, json.RawMessage(strings.TrimSpace(c.Params)), c.Duration)
	if err != nil {
		return err
	}
	if c.JSON {
		return report.JSON(e.Stdout, f)
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "plugin\t%s %s\n", f.Plugin, f.Version)
	_, _ = fmt.Fprintf(w, "time\t%.0f ns per operation (generated, checked and decoded, in batches of %d)\n",
		f.NsPerOperation, trial.BenchBatch)
	_, _ = fmt.Fprintf(w, "size\t%.1f bytes per operation\n", f.BytesPerOperation)
	_, _ = fmt.Fprintf(w, "fuel\t%.0f units per operation\n", f.FuelPerOperation)
	_, _ = fmt.Fprintf(w, "memory\t%d pages of 64 KB, of at most %d\n", f.MemoryPages, f.MaxMemoryPages)
	_, _ = fmt.Fprintf(w, "allocations\t%.2f per batch, in the host\n", f.AllocationsPerBatch)
	_, _ = fmt.Fprintf(w, "ready\t%.0f ms from the file to the first operation\n", f.ReadyMs)
	_, _ = fmt.Fprintf(w, "measured\t%d operations\n", f.Operations)
	return w.Flush()
}
