package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
)

// matrices is where a matrix runs: in this process, or on a server.
type matrices interface {
	state(ctx context.Context) (matrix.State, error)
	live(ctx context.Context, runID string) *engine.LiveState
	stop(ctx context.Context) error
	report(ctx context.Context) (matrix.Report, error)
	EnrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error)
}

// matrix runs a template with several targets, shows it, and judges each of them.
func (c *runCommand) matrix(e *terminal.Env, source []byte, scenario engine.Scenario) error {
	where, page, done, err := c.beginMatrix(e, source, scenario)
	if err != nil {
		return err
	}
	defer done()
	if err := c.followMatrix(e, where); err != nil {
		return err
	}
	background := context.WithoutCancel(e.Ctx)
	result, err := where.report(background)
	if err != nil {
		return &terminal.ExitError{Code: terminal.ExitFailed, Err: err}
	}
	var ids []string
	for _, t := range result.Targets {
		ids = append(ids, t.RunID)
	}
	states, err := c.awaitEnrichment(e,
		func(ctx context.Context) ([]engine.Enrichment, error) {
			return forEachRun(ctx, ids, where.EnrichmentOf)
		})
	if err != nil {
		return err
	}
	wrote := errors.Join(
		e.Write(c.Out, func(w io.Writer) error { return report.JSON(w, result) }),
		e.Write(c.JUnit, func(w io.Writer) error { return report.MatrixJUnit(w, result, c.RequireValid) }),
	)
	if err := report.Matrix(e.Stdout, result); err != nil {
		return err
	}
	goesOn := continuesLocally
	if page != "" {
		goesOn = continuesOnServer
	}
	for i, t := range result.Targets {
		report.Enrichment(e.Stdout, t.Label+": enrichment", states[i], goesOn)
	}
	if page != "" {
		_, _ = fmt.Fprintf(e.Stdout, "comparison  %s\n", page)
	}
	return commandResult(matrixExitCode(result, c.RequireValid), wrote)
}

func (c *runCommand) beginMatrix(e *terminal.Env, source []byte, scenario engine.Scenario) (where matrices, page string,
	done func(), err error) {
	if c.Server != "" {
		client, err := c.connect(c.Server)
		if err != nil {
			return nil, "", nil, err
		}
		var m matrix.State
		if err := client.do(e.Ctx, http.MethodPost, "/api/matrices", c.started(source),
			&m); err != nil {
			return nil, "", nil, err
		}
		return remoteMatrix{client, m.MatrixID}, client.base + "/matrix/" + m.MatrixID, func() {}, nil
	}
	s, done, err := c.open(e)
	if err != nil {
		return nil, "", nil, err
	}
	m, err := s.Matrices.Create(e.Ctx, scenario, engine.Actor{Name: "cli"})
	if err == nil {
		_, err = s.Matrices.Start(context.WithoutCancel(e.Ctx), m.MatrixID, "cli")
	}
	if err != nil {
		done()
		return nil, "", nil, err
	}
	return localMatrix{s, m.MatrixID}, "", done, nil
}

type localMatrix struct {
	*wiring.Services
	id string
}

func (m localMatrix) state(ctx context.Context) (matrix.State, error) {
	return m.Matrices.Get(ctx, m.id)
}

func (m localMatrix) live(_ context.Context, runID string) *engine.LiveState {
	return m.Runs.LiveState(runID)
}

func (m localMatrix) stop(ctx context.Context) error {
	_, err := m.Matrices.Stop(ctx, m.id, "cli")
	return err
}

func (m localMatrix) report(ctx context.Context) (matrix.Report, error) {
	return m.Matrices.Report(ctx, m.id, compare.Defaults())
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

func (m remoteMatrix) live(ctx context.Context, runID string) *engine.LiveState {
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
	for _, t := range r.Targets {
		if t.Summary != nil {
			t.Summary.Upgrade() // the server may be older
		}
	}
	return r, err
}

// followMatrix shows the runs as they come until the matrix is over. The first
// interrupt stops it; a second ends the process.
func (c *runCommand) followMatrix(e *terminal.Env, where matrices) error {
	background := context.WithoutCancel(e.Ctx)
	stop := interruptStop{e: e, what: "matrix", stop: func() error { return where.stop(background) }}
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	show, shown, message := report.NewProgress(e.Stderr), "", ""
	defer func() { show.End() }()
	var away time.Time
	for {
		state, err := where.state(stop.context())
		switch {
		case err != nil && stop.due():
			// The question was broken off, to stop the matrix at once.
		case engine.HasCode(err, engine.CodeUnavailable):
			if away.IsZero() {
				away = time.Now()
				show.Line("%v", err)
			} else if err := serverLostError(e.Settings, away, "the matrix", err); err != nil {
				return err
			}
		case err != nil:
			return &terminal.ExitError{Code: terminal.ExitFailed, Err: err}
		default:
			away = time.Time{}
			if state.Status.Terminal() {
				return nil
			}
			if next := slices.IndexFunc(state.Runs, func(r store.RunRow) bool { return r.Waiting != nil }); next >= 0 &&
				!c.Quiet {
				if why := state.Runs[next].Waiting.Reason; why != message {
					message = why
					show.Line("The run of target %d of %d %s.", next+1, len(state.Runs), why)
				}
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
				show.End()
				show = report.NewProgress(e.Stderr)
				show.Line("Target %d of %d: %s", i+1, len(state.Runs), run.MatrixLabel)
			}
			if u := where.live(background, shown); u != nil {
				show.Show(u)
			}
		}
		stop.wait(ticker.C, show)
	}
}
