package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
)

type runCommand struct {
	Template     string   `arg:"" help:"The template: a YAML or JSON file, - for standard input."`
	Feed         string   `placeholder:"FILE" type:"existingfile" help:"Operations for the workload replay, as CSV or JSON lines, at most 4 MB (workload.feed.csv)."`
	Set          []string `placeholder:"PATH=VALUE" sep:"none" help:"Override a field of the template: workload.duration_seconds=60. Repeatable."`
	Server       string   `placeholder:"URL" env:"LOADSTONE_SERVER" help:"Run on this server instead of in this process."`
	SetFile      []string `placeholder:"PATH=FILE" sep:"none" help:"Override a field by the text of a file, for secrets: target.connection.dsn=/run/secrets/dsn. Repeatable."`
	Out          string   `placeholder:"FILE" help:"Write the summary as JSON; - is standard output."`
	JUnit        string   `name:"junit" placeholder:"FILE" help:"Write the result as JUnit XML; - is standard output."`
	RequireValid bool     `help:"Exit with 4 if the verdict is not VALID."`
	AllowWrites  bool     `help:"Let the run write to tables that Loadstone did not make (target.allow_writes)."`
	Confirm      []string `name:"confirm-production" placeholder:"NAME" sep:"none" help:"With --server: name of a production connection that the run may load. Repeatable."`
	Quiet        bool     `short:"q" help:"Show no progress."`
	// WaitEnrichment bounds the wait; the exit code does not depend on what comes of it.
	WaitEnrichment time.Duration `default:"1m" placeholder:"DURATION" help:"How long to wait for the enrichment from the target's query history; 0s does not wait."`
	tokenFlags
	wiring.StoreFlags
	wiring.TraceFlags
	wiring.CalibrateFlag
}

func (c *runCommand) Run(e *terminal.Env) error {
	if c.Server != "" && len(c.Plugin) > 0 {
		return &engine.Error{Code: engine.CodeInvalid,
			Message: "--plugin loads a plugin into this process; the run of --server takes place there.",
			Hint:    "upload it with: loadstone plugin upload " + c.Plugin[0] + ", and name it in the template"}
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	// What is wrong with the template shall be said before anything starts.
	scenario, err := template.Parse(source)
	if err != nil && len(c.Set)+len(c.SetFile) > 0 {
		return template.WithoutLines(err)
	}
	if err != nil {
		return err
	}
	if c.AllowWrites {
		scenario.AllowWrites()
	}
	if c.Feed != "" {
		if err := c.applyFeed(&scenario); err != nil {
			return err
		}
	}
	if c.Feed != "" || c.AllowWrites {
		if source, err = json.Marshal(scenario); err != nil {
			return fmt.Errorf("writing the template: %w", err)
		}
	}
	if err := e.Claim(c.Out, c.JUnit); err != nil {
		return err
	}
	if scenario.Matrix != nil {
		e.Settle()
		return c.matrix(e, source, scenario)
	}
	var o runResult
	if c.Server != "" {
		e.Settle()
		o, err = c.remote(e, source)
	} else {
		o, err = c.local(e, scenario)
	}
	if err != nil {
		return err
	}
	return c.conclude(e, o)
}

// runResult is a finished run.
type runResult struct {
	summary *engine.Summary
	setup   bool   // it failed before load started
	server  string // where its executions are, for a person
	// seconds is what a comparison needs, for --out.
	seconds []engine.MeasuredSecond
	// enrichment is what the target's history knew when it was not waited for any
	// longer, and goesOn who asks it further.
	enrichment engine.Enrichment
	continues  string
}

// maxTemplate is more than a template can have; how much that is says package template.
const maxTemplate = 2 << 20

// source reads the template and applies --set.
func (c *runCommand) source() (source []byte, err error) {
	if c.Template == "-" {
		source, err = terminal.ReadAllBounded("The template", "standard input", os.Stdin, maxTemplate)
	} else {
		source, err = terminal.ReadBounded("The template", c.Template, maxTemplate)
	}
	if err != nil {
		return nil, err
	}
	fields := make([]template.Assignment, 0, len(c.Set))
	for _, set := range c.Set {
		path, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("--set %s has no value.", set),
				Hint: "write --set path=value, for example --set workload.duration_seconds=60"}
		}
		fields = append(fields, template.Assignment{Path: path, Value: value})
	}
	more, err := setFileAssignments(c.SetFile)
	if err != nil {
		return nil, err
	}
	if fields = append(fields, more...); len(fields) == 0 {
		return source, nil
	}
	return template.SetAll(source, fields)
}

// applyFeed applies --feed.
func (c *runCommand) applyFeed(scenario *engine.Scenario) error {
	f, err := os.Open(c.Feed)
	if err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The feed cannot be read: %v.", err), Cause: err}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, engine.MaxFeedCSV+1)) // one too long is refused with the template
	if err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("The feed cannot be read: %v.", err), Cause: err}
	}
	if at := invalidUTF8(text); at > 0 && len(text) <= engine.MaxFeedCSV {
		// JSON would replace the bytes, and other values would be issued than the file holds.
		return &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The feed %s cannot be used: line %d is not valid UTF-8.", c.Feed, at),
			Hint:    "Save the file as UTF-8; values of bytes are written in hexadecimal."}
	}
	scenario.Workload.Feed = &engine.Feed{CSV: string(text)}
	return template.Check(*scenario)
}

// invalidUTF8 returns the first line that is not valid UTF-8, counted from 1, or 0.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return 0
	}
	line := 1
	for part := range bytes.Lines(text) {
		if !utf8.Valid(part) {
			break
		}
		line++
	}
	return line
}

// open hosts everything in this process; done closes it.
func (c *runCommand) open(e *terminal.Env) (s *wiring.Services, done func(), err error) {
	// What the user should know is in the run's own log, which is shown.
	quiet := zerolog.Nop()
	if e.Log.GetLevel() == zerolog.DebugLevel {
		quiet = e.Log
	}
	flags := c.StoreFlags
	if flags.DataDir == "" {
		flags.DataDir = wiring.DefaultDataDir()
	}
	remove := func() {}
	options := wiring.Options{Store: flags, Version: version, Traces: c.ForService("loadstone-run", e), Log: quiet,
		Lease: e.Lease, PluginCache: e.PluginCache}
	s, err = wiring.Open(e.Ctx, options)
	if engine.HasCode(err, engine.CodeConflict) && c.DataDir == "" {
		_, _ = fmt.Fprintf(e.Stderr,
			"Another Loadstone uses %s: this run keeps its data in a folder of its own, which is removed afterwards.\n",
			flags.DataDir)
		dir, tmpErr := os.MkdirTemp("", "loadstone-")
		if tmpErr != nil {
			return nil, nil, fmt.Errorf("making a temporary data directory: %w", tmpErr)
		}
		remove = func() { _ = os.RemoveAll(dir) }
		flags.DataDir = dir
		options.Store = flags
		s, err = wiring.Open(e.Ctx, options)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	if c.Calibrate != "off" {
		// The folder of this run alone has none, but the machine's may.
		if kept := wiring.ReadCertificate(
			filepath.Join(wiring.DefaultDataDir(), wiring.CertificateFile),
			version,
		); kept != nil &&
			s.Certificate.Current() == nil {
			s.Certificate.Adopt(kept)
		}
		s.Certificate.EnsureBeforeRun(e, c.Quiet)
	}
	return s, func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(closing); err != nil {
			e.Log.Warn().Err(err).Msg("closing")
		}
		remove()
	}, nil
}

// local runs in this process.
func (c *runCommand) local(e *terminal.Env, scenario engine.Scenario) (runResult, error) {
	s, done, err := c.open(e)
	if err != nil {
		return runResult{}, err
	}
	defer done()
	summary, ended, err := c.once(e, s, scenario)
	if err != nil {
		return runResult{}, err
	}
	run := ended.Run
	var seconds []engine.MeasuredSecond
	if c.Out != "" {
		if seconds, err = s.Runs.Seconds(context.WithoutCancel(e.Ctx), run.RunID); err != nil {
			return runResult{}, err
		}
	}
	o := runResult{
		summary:   summary,
		seconds:   seconds,
		setup:     ended.StopReason == engine.StopSetupFailure,
		server:    s.Results.Location(run.RunID),
		continues: continuesLocally,
	}
	states, err := c.awaitEnrichment(e, func(ctx context.Context) ([]engine.Enrichment, error) {
		return forEachRun(ctx, []string{run.RunID}, s.EnrichmentOf)
	})
	if err != nil {
		return runResult{}, err
	}
	o.enrichment = states[0]
	return o, nil
}

// once makes a run of a scenario, and waits for its figures. The run is as it ended, with them.
func (c *runCommand) once(e *terminal.Env, s *wiring.Services, scenario engine.Scenario) (*engine.Summary,
	*engine.RunDetail, error) {
	run, err := s.Runs.Create(e.Ctx, scenario, engine.Actor{Name: "cli"})
	if err != nil {
		return nil, nil, err
	}
	e.Settle()
	summary, err := follow(e, s, run.RunID, c.Quiet, func(ctx context.Context) error {
		_, err := s.Runs.Start(ctx, run.RunID, "cli")
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	ended, err := s.Store.Run(context.WithoutCancel(e.Ctx), run.RunID)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the run: %w", err)
	}
	return summary, &engine.RunDetail{Run: ended, Summary: summary}, nil
}

// Who goes on with an enrichment that was not waited for.
const (
	continuesLocally  = "the next server on this data directory goes on"
	continuesOnServer = "the server goes on"
)

// follow starts a run in this process, shows it live, and waits for its
// figures. The first interrupt stops the run; a second ends the process.
func follow(e *terminal.Env, s *wiring.Services, runID string, quiet bool,
	start func(context.Context) error) (*engine.Summary, error) {
	background := context.WithoutCancel(e.Ctx)
	updates, cancel, err := s.Runs.Subscribe(runID)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := start(background); err != nil {
		return nil, err
	}
	show := report.NewProgress(e.Stderr)
	interrupted := e.Ctx.Done()
	// The live updates go on while the target's history is asked.
	figures := make(chan struct{})
	go func() {
		defer close(figures)
		_, _ = s.Runs.Wait(background, runID) // asked again below
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	message, started := "", quiet
	for updates != nil {
		select {
		case <-ticker.C:
			if started {
				break
			}
			run, err := s.Runs.Run(background, runID)
			if started = err == nil && run.Status != engine.StatusPrepared; err == nil && run.Waiting != nil {
				message = show.Waiting(run.Waiting, message)
			}
		case <-figures:
			updates = nil
		case u, ok := <-updates:
			if !ok {
				updates = nil
				break
			}
			if !quiet {
				show.Show(u)
			}
		case <-interrupted:
			interrupted = nil
			e.Forget()
			show.Line("Stopping the run; interrupt again to quit at once.")
			if _, err := s.Runs.Stop(background, runID, "cli"); err != nil && !engine.HasCode(err, engine.CodeConflict) {
				show.Line("The run could not be stopped: %v", err)
			}
		}
	}
	show.End()
	summary, err := s.Runs.Wait(background, runID)
	if err != nil {
		return nil, &terminal.ExitError{Code: terminal.ExitFailed, Err: fmt.Errorf("waiting for the figures: %w", err)}
	}
	return summary, nil
}

// conclude writes the reports and turns the result into an exit code.
func (c *runCommand) conclude(e *terminal.Env, o runResult) error {
	s := o.summary
	// What cannot be written shall not hide the result.
	wrote := errors.Join(
		e.Write(c.Out, func(w io.Writer) error {
			return report.JSON(w, report.File{Summary: s, Seconds: o.seconds, Enrichment: o.enrichment.OrNil()})
		}),
		e.Write(c.JUnit, func(w io.Writer) error { return report.JUnit(w, s, c.RequireValid) }),
	)
	if err := report.Summary(e.Stdout, s); err != nil {
		return err
	}
	report.Enrichment(e.Stdout, "enrichment", o.enrichment, o.continues)
	if o.server != "" && s.Accounting.Recorded > 0 {
		_, _ = fmt.Fprintf(e.Stdout, "executions  %s\n", o.server)
	}
	return commandResult(resultExitCode(s, o.setup, c.RequireValid), wrote)
}

// commandResult is the end of a command whose result has the exit code; wrote is why a
// file of the result could not be written.
func commandResult(code int, wrote error) error {
	if code == terminal.ExitPassed && wrote == nil {
		return nil
	}
	if code == terminal.ExitPassed {
		code = terminal.ExitUsage
	}
	return &terminal.ExitError{Code: code, Err: wrote}
}
