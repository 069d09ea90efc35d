// This part is loadstone report: the report of a run, one HTML file to hand on.

package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/ui"
)

// ReportFlags are those of the command.
type ReportFlags struct {
	ID     string `arg:"" name:"run" help:"The run's id."`
	Out    string `short:"o" placeholder:"FILE" help:"Output file; - is standard output (default: a file named after the run)."`
	Server string `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Server of the run, instead of this machine's data directory."`
	From   string `enum:",snowflake" default:"" placeholder:"snowflake" help:"Read the run from the Snowflake account to which it was exported: --from snowflake."`
	// Connection names the account.
	Connection string `placeholder:"CONNECTION" help:"With --from snowflake: a saved connection, a connection string, or file:PATH of one (default: the servers' results connection)."`
	wiring.StoreFlags
}

// ServerGet asks the server that the flags name; nil without one.
type ServerGet func(ctx context.Context, path string) ([]byte, error)

// Run writes the report.
func (f *ReportFlags) Run(e *terminal.Env, read ServerGet) error {
	if err := CheckRunID(f.ID); err != nil {
		return err
	}
	if err := e.Claim(f.Out); err != nil {
		return err
	}
	r, err := f.report(e, read)
	if err != nil {
		return err
	}
	path := f.Out
	if path == "" {
		path = api.FileName(r)
		if _, err := os.Lstat(path); err == nil {
			return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("There is a file %s already.", path),
				Hint: "Name another with --out, or the same to replace it."}
		}
	}
	if err := e.Write(path, func(w io.Writer) error { _, err := w.Write(r.HTML); return err }); err != nil {
		return err
	}
	if f.Out != "-" {
		_, _ = fmt.Fprintf(e.Stdout, "The report is in %s.\n", path)
	}
	return nil
}

// check refuses flags that would be ignored.
func (f *ReportFlags) check() error {
	switch {
	case f.From != "" && f.Server != "":
		return engine.InvalidField("--from", "is given, and a server too",
			"leave --server out and unset LOADSTONE_SERVER, or leave --from out")
	case f.From == "" && f.Connection != "":
		return engine.InvalidField("--connection", "is given without --from", "add --from snowflake, or leave it out")
	}
	return nil
}

func (f *ReportFlags) report(e *terminal.Env, read ServerGet) (api.Report, error) {
	if f.From != "" {
		r, err := f.readBack(e)
		return r, err
	}
	if read != nil {
		r, err := fetchReport(e.Ctx, read, f.ID)
		return r, RunNotFound(f.ID, err)
	}
	r, err := makeLocalReport(
		e,
		f.StoreFlags,
		func(m *api.ReportMaker) (api.Report, error) { return m.Report(e.Ctx, f.ID) },
	)
	return r, RunNotFound(f.ID, err)
}

// readBack makes the report of a run that an account has, in a control store of its own that is gone afterwards.
func (f *ReportFlags) readBack(e *terminal.Env) (r api.Report, err error) {
	account, err := openAccount(e, f.StoreFlags, "--connection", f.Connection)
	if err != nil {
		return r, err
	}
	defer account.Close()
	dir, err := os.MkdirTemp("", "loadstone-report-")
	if err != nil {
		return r, fmt.Errorf("making a folder for the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := wiring.Open(
		e.Ctx,
		wiring.Options{Store: wiring.StoreFlags{DataDir: dir, Prices: f.Prices}, Version: e.Version,
			Log: zerolog.Nop(), Lease: e.Lease, PluginCache: e.PluginCache},
	)
	if err != nil {
		return r, err
	}
	defer closeServices(e, s)
	var content []byte
	if err := s.Store.LoadRunRows(e.Ctx, func(each func(string, map[string]json.RawMessage) error) (err error) {
		content, err = snowflakeexport.ReadRun(
			e.Ctx,
			account.SQLAccount,
			wiring.SnowflakeSchemaCommand(account.Name),
			f.ID,
			each,
		)
		return err
	}); err != nil {
		return r, err
	}
	if len(content) > 0 {
		sum := sha256.Sum256(content)
		sha := hex.EncodeToString(sum[:])
		if err := s.Results.PutSegment(e.Ctx, engine.Artifact{RunID: f.ID, Name: segment.Name(1, sha), SHA256: sha,
			SizeBytes: int64(len(content))}, content); err != nil {
			return r, err
		}
	}
	return localReportMaker(e, s).Report(e.Ctx, f.ID)
}

// makeLocalReport has a report made over this machine's data directory.
func makeLocalReport(
	e *terminal.Env,
	flags wiring.StoreFlags,
	make1 func(*api.ReportMaker) (api.Report, error),
) (api.Report,
	error) {
	s, done, err := OpenDataDir(e, flags)
	if err != nil {
		return api.Report{}, err
	}
	defer done()
	return make1(localReportMaker(e, s))
}

func localReportMaker(e *terminal.Env, s *wiring.Services) *api.ReportMaker {
	maker := api.NewReportMaker(s.Runs, s.Store, ui.Dist(), e.Version)
	maker.Kinds = &compare.BreakdownReader{Runs: s.Runs, Segments: s.Results}
	return maker
}

// fetchReport asks a server for the report of a run, and for its name.
func fetchReport(ctx context.Context, read ServerGet, runID string) (r api.Report, err error) {
	path := "/api/runs/" + url.PathEscape(runID)
	text, err := read(ctx, path)
	if err != nil {
		return r, err
	}
	var run struct {
		RunID   string `json:"run_id"`
		RunName string `json:"test_name"`
	}
	if err := json.Unmarshal(text, &run); err != nil || run.RunID == "" {
		return r, &engine.Error{Code: engine.CodeUnavailable, Message: "The server answered with something else than a run.",
			Hint: "is this the address of a Loadstone server, of this version?", Cause: err}
	}
	r.RunID, r.RunName = run.RunID, run.RunName
	r.HTML, err = read(ctx, path+"/report")
	return r, err
}
