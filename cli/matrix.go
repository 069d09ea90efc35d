package cli

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/compare"
	"github.com/loadstone-db/loadstone/engine/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
)

// matrices is where a matrix runs: in this process, or on a server.
type matrices interface {
	state(ctx context.Context) (matrix.State, error)
	live(ctx context.Context, runID string) *engine.Payload
	stop(ctx context.Context) error
	report(ctx context.Context) (matrix.Report, error)
	enrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error)
}

// matrix runs a template with several targets, shows it, and judges each of them.
func (c *runCommand) matrix(e *env, source []byte, scenario engine.Scenario) error {
	where, page, done, err := c.beginMatrix(e, source, scenario)
	if err != nil {
		return err
	}
	defer done()
	if err := c.followMatrix(e, where); err != nil {
		return err
	}
	background := context.WithoutCancel(e.ctx)
	report, err := where.report(background)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	var ids []string
	for _, t := range report.Targets {
		ids = append(ids, t.RunID)
	}
	states, err := c.awaitEnrichment(e,
		func(ctx context.Context) ([]engine.Enrichment, error) { return each(ctx, ids, where.enrichmentOf) })
	if err != nil {
		return err
	}
	wrote := errors.Join(
		e.write(c.Out, func(w io.Writer) error { return printJSON(w, report) }),
		e.write(c.JUnit, func(w io.Writer) error { return writeMatrixJUnit(w, report, c.RequireValid) }),
	)
	if err := printMatrix(e.stdout, report); err != nil {
		return err
	}
	goesOn := goesOnHere
	if page != "" {
		goesOn = goesOnThere
	}
	for i, t := range report.Targets {
		printEnrichment(e.stdout, t.Label+": enrichment", states[i], goesOn)
	}
	if page != "" {
		_, _ = fmt.Fprintf(e.stdout, "comparison  %s\n", page)
	}
	return verdict(judgeMatrix(report, c.RequireValid), wrote)
}

func (c *runCommand) beginMatrix(e *env, source []byte, scenario engine.Scenario) (where matrices, page string,
	done func(), err error) {
	if c.Server != "" {
		client, err := c.connect(c.Server)
		if err != nil {
			return nil, "", nil, err
		}
		var m matrix.State
		if err := client.do(e.ctx, http.MethodPost, "/api/matrices", map[string]any{"source": string(source), "start": true},
			&m); err != nil {
			return nil, "", nil, err
		}
		return remoteMatrix{client, m.MatrixID}, client.base + "/matrix/" + m.MatrixID, func() {}, nil
	}
	s, done, err := c.open(e)
	if err != nil {
		return nil, "", nil, err
	}
	m, err := s.matrices.Create(e.ctx, scenario, "cli")
	if err == nil {
		_, err = s.matrices.Start(context.WithoutCancel(e.ctx), m.MatrixID, "cli")
	}
	if err != nil {
		done()
		return nil, "", nil, err
	}
	return localMatrix{s, m.MatrixID}, "", done, nil
}

type localMatrix struct {
	*services
	id string
}

func (m localMatrix) state(ctx context.Context) (matrix.State, error) {
	return m.matrices.Get(ctx, m.id)
}

func (m localMatrix) live(_ context.Context, runID string) *engine.Payload { return m.runs.Live(runID) }

func (m localMatrix) stop(ctx context.Context) error {
	_, err := m.matrices.Stop(ctx, m.id, "cli")
	return err
}

func (m localMatrix) report(ctx context.Context) (matrix.Report, error) {
	return m.matrices.Report(ctx, m.id, compare.Defaults())
}

type remoteMatrix struct {
	*client
	id string
}

func (m remoteMatrix) path() string { return "/api/matrices/" + url.PathEscape(m.id) }

func (m remoteMatrix) state(ctx context.Context) (s matrix.State, err error) {
	err = m.do(ctx, http.MethodGet, m.path(), nil, &s)
	return s, err
}

func (m remoteMatrix) live(ctx context.Context, runID string) *engine.Payload {
	var d engine.RunDetail
	if err := m.do(ctx, http.MethodGet, "/api/runs/"+url.PathEscape(runID), nil, &d); err != nil {
		return nil // it is only to look at
	}
	return d.Live
}

func (m remoteMatrix) stop(ctx context.Context) error {
	return m.do(ctx, http.MethodPost, m.path()+"/stop", struct{}{}, nil)
}

func (m remoteMatrix) report(ctx context.Context) (r matrix.Report, err error) {
	err = m.do(ctx, http.MethodGet, m.path()+"/report", nil, &r)
	return r, err
}

// followMatrix shows the runs as they come until the matrix is over. The first
// interrupt stops it; a second ends the process.
func (c *runCommand) followMatrix(e *env, where matrices) error {
	background := context.WithoutCancel(e.ctx)
	stop := stopping{e: e, what: "matrix", do: func() error { return where.stop(background) }}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	show, shown := newProgress(e.stderr), ""
	defer func() { show.end() }()
	var away time.Time
	for {
		state, err := where.state(stop.context())
		switch {
		case err != nil && stop.due():
			// The question was broken off, to stop the matrix at once.
		case engine.HasCode(err, engine.CodeUnavailable):
			if away.IsZero() {
				away = time.Now()
				show.line("%v", err)
			} else if time.Since(away) > awayLimit {
				return lost("the matrix", err)
			}
		case err != nil:
			return &exitError{code: exitFailed, err: err}
		default:
			away = time.Time{}
			if state.Status.Terminal() {
				return nil
			}
			// One whose figures or enrichment are still under way is shown while none goes on.
			i := slices.IndexFunc(state.Runs, func(r store.RunRow) bool { return r.Status.Live() })
			if i < 0 {
				i = slices.IndexFunc(state.Runs, func(r store.RunRow) bool {
					return r.Status.Terminal() &&
						r.Phase == engine.PhaseProcessing
				})
			}
			if i < 0 || c.Quiet {
				break
			}
			if run := state.Runs[i]; run.RunID != shown {
				shown = run.RunID
				show.end()
				show = newProgress(e.stderr)
				show.line("Target %d of %d: %s", i+1, len(state.Runs), run.MatrixLabel)
			}
			if u := where.live(background, shown); u != nil {
				show.show(u)
			}
		}
		stop.wait(ticker.C, show)
	}
}

// judgeMatrix is the exit code of all targets together: that of the worst.
func judgeMatrix(r matrix.Report, requireValid bool) int {
	var codes []int
	for _, t := range r.Targets {
		codes = append(codes, judgeTarget(t, requireValid))
	}
	for _, code := range []int{exitFailed, exitUsage, exitThresholds, exitInvalid} {
		if slices.Contains(codes, code) {
			return code
		}
	}
	return exitPassed
}

func judgeTarget(t matrix.TargetReport, requireValid bool) int {
	if t.Summary == nil {
		if t.SetupFailed {
			return exitUsage
		}
		return exitFailed
	}
	return judge(t.Summary, t.SetupFailed, requireValid)
}

// printMatrix writes the result for a person: a table, then what failed.
func printMatrix(out io.Writer, r matrix.Report) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	p := printer(w)
	p("")
	p("%s  %s", r.Name, strings.ToLower(string(r.Status)))
	p("  matrix %s", r.MatrixID)
	if note := standIns(r); note != "" {
		p("  %s", note)
	}
	p("")
	searched := slices.ContainsFunc(r.Targets, func(t matrix.TargetReport) bool {
		return t.Summary != nil &&
			t.Summary.FindMax != nil
	})
	head := "target\tresult\t"
	if searched {
		head += "limit\t"
	}
	paid := slices.ContainsFunc(r.Targets, func(t matrix.TargetReport) bool { return perMillion(t.Summary) != "" })
	cost := ""
	if paid {
		cost = "cost of a million\t"
	}
	p("%sop/s\tP50\tP95\tP99\terrors\tvalidity\t%sagainst %s", head, cost, r.Labels[0])
	for _, t := range r.Targets {
		label := shown(labelOf(t))
		s := t.Summary
		if s == nil || s.LatencyMs == nil {
			p("%s\t%s%s", label, strings.ToLower(string(t.Status)), strings.Repeat("\t", strings.Count(head+cost, "\t")+5))
			continue
		}
		line := fmt.Sprintf("%s\t%s\t", label, resultOf(t))
		if searched {
			limit := "none"
			if level, ok := s.FindMax.Level(); ok {
				limit = levelOf(s.FindMax.Unit, level)
			}
			line += limit + "\t"
		}
		if paid {
			cost = cmp.Or(perMillion(s), "–") + "\t"
		}
		p("%s%s\t%s\t%s\t%s\t%s\t%s\t%s%s", line, rated(s, s.QPS), millis(s.LatencyMs.P50), millis(s.LatencyMs.P95),
			millis(s.LatencyMs.P99), count(s.Errors.Count),
			s.VerdictText(), cost, againstOf(t))
	}
	p("")
	if err := flush(w); err != nil {
		return err
	}
	say := printer(out)
	for _, t := range r.Targets {
		s := t.Summary
		if s == nil {
			say("%s: %s, without figures", labelOf(t), strings.ToLower(string(t.Status)))
			continue
		}
		if s.CancellationReason != nil && *s.CancellationReason != "" {
			say("%s: %s", t.Label, *s.CancellationReason)
		}
		if t.Status == engine.StatusCompleted && !s.Worked() {
			say("%s: %s", t.Label, nothingWorked(s))
		}
		for _, th := range s.Thresholds {
			if !th.Passed && t.Status == engine.StatusCompleted {
				say("%s: threshold %s FAILED: %s", t.Label, th.Threshold, th.Reason)
			}
		}
		for _, cause := range s.ValidityDetail.Causes {
			say("%s: %s: %s", t.Label, cause.Cause, cause.Detail)
		}
		if s.Cost != nil {
			printCost(func(format string, args ...any) {
				line := strings.ReplaceAll(strings.TrimPrefix(fmt.Sprintf(format, args...), "\t"), "\t", ": ")
				say("%s: %s", t.Label, line)
			}, s.Cost, s.StandIn())
		}
	}
	return nil
}

// labelOf names a target, and the stand-in that answered in its place.
func labelOf(t matrix.TargetReport) string {
	if word := engine.StandIn(t.Simulated, t.Emulated); word != "" {
		return fmt.Sprintf("%s (%s)", t.Label, word)
	}
	return t.Label
}

// standIns says before the table whose figures are no database's, empty when all are.
func standIns(r matrix.Report) string {
	var of []string
	for _, t := range r.Targets {
		if word := engine.StandIn(t.Simulated, t.Emulated); word != "" {
			of = append(of, fmt.Sprintf("%s (%s)", t.Label, word))
		}
	}
	switch {
	case len(of) == 0:
		return ""
	case len(of) == len(r.Targets):
		return "All figures are a stand-in's: they say nothing about the real database."
	}
	return "Simulated figures stand beside real ones: those of " + strings.Join(of, ", ") +
		" are a stand-in's, so the differences say nothing."
}

// perMillion is the price of a million operations, empty where nobody knows it.
func perMillion(s *engine.Summary) string {
	if s == nil || s.Cost == nil || s.Cost.PricePerMillion == nil {
		return ""
	}
	return fmt.Sprintf("%.3g %s", *s.Cost.PricePerMillion, s.Cost.Currency)
}

func resultOf(t matrix.TargetReport) string {
	text := strings.ToLower(string(t.Status))
	if t.Status == engine.StatusCompleted && len(t.Summary.Thresholds) > 0 {
		text = "passed"
		if !t.Summary.Worked() {
			text = "nothing worked"
		} else if !t.Summary.Passed {
			text = "thresholds failed"
		}
	}
	return text
}

// againstOf is the comparison with the first target in a few words.
func againstOf(t matrix.TargetReport) string {
	if t.Against == nil {
		if t.Problem != "" {
			return "–"
		}
		return "baseline"
	}
	verdict := string(t.Against.Verdict)
	if t.Against.StandIn.Mixed() {
		verdict += ", but " + cmp.Or(t.Against.StandIn.B, "real") + " against " + cmp.Or(t.Against.StandIn.A, "real")
	}
	var parts []string
	for _, m := range t.Against.Metrics {
		if m.Difference != nil && (m.Name == "qps" || m.Name == "p95_ms") {
			parts = append(parts, fmt.Sprintf("%s %+.1f %%", strings.TrimSuffix(m.Name, "_ms"), *m.Difference))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s (too short to compare)", verdict)
	}
	return fmt.Sprintf("%s (%s)", verdict, strings.Join(parts, ", "))
}

// writeMatrixJUnit writes a suite for each target.
func writeMatrixJUnit(w io.Writer, r matrix.Report, requireValid bool) error {
	all := struct {
		XMLName xml.Name     `xml:"testsuites"`
		Name    string       `xml:"name,attr"`
		Suites  []junitSuite `xml:"testsuite"`
	}{Name: printable(r.Name)}
	for _, t := range r.Targets {
		s := t.Summary
		if s == nil {
			reason := fmt.Sprintf("The run is %s and has no figures.", t.Status)
			s = &engine.Summary{RunID: t.RunID, RunName: r.Name + " · " + t.Label, Status: t.Status,
				CancellationReason: &reason, Validity: engine.VerdictValid,
				Simulated: t.Simulated, Emulated: t.Emulated}
		}
		all.Suites = append(all.Suites, suiteOf(s, requireValid))
	}
	return writeXML(w, all)
}
