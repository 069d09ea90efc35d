package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// maxDocument is the most bytes of a file of tables.
const maxDocument = 4 << 20

// defaultTargetLag is the target lag of a table that names none, as the API has it.
const defaultTargetLag = 60

// TableDocument is a table as a file has it.
type TableDocument struct {
	Name        string       `yaml:"name" json:"name"`
	Description string       `yaml:"description,omitempty" json:"description,omitempty"`
	TargetLag   float64      `yaml:"target_lag_seconds,omitempty" json:"target_lag_seconds,omitempty"`
	Mode        refresh.Mode `yaml:"refresh_mode,omitempty" json:"refresh_mode,omitempty"`
	PartitionBy string       `yaml:"partition_by,omitempty" json:"partition_by,omitempty"`
	Partitions  int          `yaml:"partitions,omitempty" json:"partitions,omitempty"`
	Priority    int          `yaml:"priority,omitempty" json:"priority,omitempty"`
	Definition  string       `yaml:"definition" json:"definition"`
}

func tableDocumentOf(t refresh.Table) TableDocument {
	return TableDocument{t.Name, t.Description, t.TargetLagSeconds, t.Mode, t.PartitionBy, t.Partitions, t.Priority,
		t.Definition}
}

func (d TableDocument) yaml() ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(d), e.Close()); err != nil {
		return nil, fmt.Errorf("writing the table: %w", err)
	}
	return out.Bytes(), nil
}

// withDefaults is a document with what it leaves out.
func (d TableDocument) withDefaults() TableDocument {
	if d.TargetLag == 0 {
		d.TargetLag = defaultTargetLag
	}
	if d.Mode == "" {
		d.Mode = refresh.Auto
	}
	// A server keeps definitions so.
	d.Definition = strings.TrimRight(strings.TrimSpace(d.Definition), "; \t\r\n")
	return d
}

// readTableDocuments reads the tables of a file, one after another, with --- between them.
func readTableDocuments(path string, text []byte) (all []TableDocument, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	named := map[string]bool{}
	for {
		var d TableDocument
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			switch {
			case d.Name == "":
				err = fmt.Errorf("table %d has no name", len(all)+1)
			case named[d.Name]:
				err = fmt.Errorf("the table %q is there twice", d.Name)
			}
		}
		if err != nil {
			return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
				Message: fmt.Sprintf("The file %s cannot be read: %s.", path, terminal.Shown(err.Error())),
				Hint:    "Each table has a name and a definition, as loadstone table show prints them; --- stands between two."}
		}
		named[d.Name] = true
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The file %s has no table.", path)}
	}
	return all, nil
}

// TableApply is loadstone table apply.
type TableApply struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"YAML or JSON with tables, as loadstone table show prints them; - is standard input."`
}

// firstRefreshTimeout is how long a table is waited for that another one reads.
const firstRefreshTimeout = time.Minute

// Run makes the tables that are not there, and changes those that are other than the file says, in its order.
func (c TableApply) Run(e *terminal.Env, do APICall) error {
	text, err := readFile("The file", c.File)
	if err != nil {
		return err
	}
	all, err := readTableDocuments(c.File, text)
	if err != nil {
		return err
	}
	for _, d := range all {
		done, err := d.apply(e.Ctx, do)
		// One that reads a table which was just made is made when that one has been refreshed first.
		for started := time.Now(); engine.HasCode(err, engine.CodeUnavailable) && time.Since(started) < firstRefreshTimeout; {
			select {
			case <-e.Ctx.Done():
				return e.Ctx.Err()
			case <-time.After(refreshPollInterval):
			}
			done, err = d.apply(e.Ctx, do)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(e.Stdout, "%s %s.\n", terminal.Shown(d.Name), done); err != nil {
			return err
		}
	}
	return nil
}

func readFile(what, path string) ([]byte, error) {
	if path == "-" {
		return terminal.ReadAllBounded(what, "standard input", os.Stdin, maxDocument)
	}
	return terminal.ReadBounded(what, path, maxDocument)
}

// apply has a table be as the document says, and tells what was done.
func (d TableDocument) apply(ctx context.Context, do APICall) (done string, err error) {
	d = d.withDefaults()
	there, err := readTable(ctx, do, d.Name)
	if engine.HasCode(err, engine.CodeNotFound) {
		return "was made", do(ctx, http.MethodPost, tableBase, d, nil)
	}
	if err != nil {
		return "", err
	}
	if tableDocumentOf(there.Table).withDefaults() == d {
		return "is as it should be", nil
	}
	in := struct {
		TableDocument
		Name    any   `json:"name,omitempty"` // it stands in the address
		Version int64 `json:"version"`
	}{d, nil, there.Table.Version}
	return "was changed", do(ctx, http.MethodPut, tablePath(d.Name, ""), in, nil)
}

// TableCreate is loadstone table create.
type TableCreate struct {
	TableName
	Definition  string  `placeholder:"SQL" xor:"definition" required:"" help:"The SELECT."`
	File        string  `short:"f" placeholder:"FILE" xor:"definition" required:"" help:"File with the definition; - is standard input."`
	TargetLag   float64 `name:"target-lag" default:"60" placeholder:"SECONDS" help:"Maximum lag behind what it reads, in seconds (default: 60)."`
	Mode        string  `name:"mode" default:"AUTO" enum:"FULL,INCREMENTAL,AUTO" help:"What a refresh replaces: ${enum}."`
	PartitionBy string  `name:"partition-by" default:"" enum:",RUN,DAY" help:"RUN: each row depends on the run of its run_id only; DAY: on the runs of its day."`
	Partitions  int     `placeholder:"N" help:"Parts of a refresh, for several workers; 0 = by size (default: 0)."`
	Description string  `help:"What it is for."`
	Priority    int     `placeholder:"N" help:"Higher priorities are refreshed first, -100 to 100 (default: 0)."`
}

// Run makes the table.
func (c TableCreate) Run(e *terminal.Env, do APICall) error {
	d := TableDocument{c.Name, c.Description, c.TargetLag, refresh.Mode(c.Mode), c.PartitionBy, c.Partitions,
		c.Priority, c.Definition}
	if c.File != "" {
		text, err := readFile("The definition", c.File)
		if err != nil {
			return err
		}
		d.Definition = string(text)
	}
	if err := do(e.Ctx, http.MethodPost, tableBase, d, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s was made; a worker refreshes it soon.\n", terminal.Shown(c.Name))
	return err
}
