package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/run/query"
)

// remote runs the template on a server and follows it there.
func (c *runCommand) remote(e *terminal.Env, source []byte) (runResult, error) {
	client, err := c.connect(c.Server)
	if err != nil {
		return runResult{}, err
	}
	var run engine.Run
	if err := client.do(e.Ctx, http.MethodPost, "/api/runs", c.started(source), &run); err != nil {
		return runResult{}, err
	}
	detail, err := client.follow(e, run.RunID, c.Quiet)
	if err != nil {
		return runResult{}, err
	}
	var list report.File
	if c.Out != "" && detail.Summary != nil {
		list, err = RunFile(context.WithoutCancel(e.Ctx), client.get, run.RunID)
		if err != nil {
			return runResult{}, &terminal.ExitError{Code: terminal.ExitFailed, Err: err}
		}
	}
	states, err := c.awaitEnrichment(e, func(ctx context.Context) ([]engine.Enrichment, error) {
		return forEachRun(ctx, []string{run.RunID}, client.EnrichmentOf)
	})
	if err != nil {
		return runResult{}, err
	}
	return runResult{
		summary:    detail.Summary,
		seconds:    list.Seconds,
		setup:      detail.StopReason == engine.StopSetupFailure,
		server:     client.base + "/runs/" + run.RunID,
		enrichment: states[0],
		continues:  continuesOnServer,
	}, nil
}

// started is what asks a server to make and start what a template describes.
func (c *runCommand) started(source []byte) map[string]any {
	requested := map[string]any{"source": string(source), "start": true}
	if len(c.Confirm) > 0 {
		requested["confirm_production"] = c.Confirm
	}
	return requested
}

// uploadTimeout bounds an upload: its way, the wait for others, and quarantine.
const uploadTimeout = 3 * time.Minute

type client struct {
	base  string
	token secret.Secret
	http  *http.Client
}

func newClient(server string, token secret.Secret) (*client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, engine.InvalidField("--server", "is not the address of a server",
			"for example http://127.0.0.1:8080")
	}
	if token.IsZero() {
		return nil, engine.InvalidField("--token", "is required with --server",
			"make an API token on the page under Settings, and give it as LOADSTONE_TOKEN, --token-file or --token")
	}
	return &client{base: strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), token: token,
		http: &http.Client{Timeout: 30 * time.Second}}, nil
}

// do sends a JSON request; a nil in has no body.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	if in == nil {
		return c.send(ctx, method, path, "", nil, out)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return c.send(ctx, method, path, "application/json", bytes.NewReader(text), out)
}

// send makes a request and reads its JSON answer into out, unless that is nil. A func(io.Reader) error is given the
// answer as it comes, for as long as it does.
func (c *client) send(ctx context.Context, method, path, media string, body io.Reader, out any) error {
	if take, comes := out.(func(io.Reader) error); comes {
		endless := client{base: c.base, token: c.token, http: &http.Client{Transport: c.http.Transport}}
		_, err := endless.roundTrip(ctx, method, path, media, body, take)
		return err
	}
	text, err := c.read(ctx, method, path, media, body)
	if err != nil || out == nil {
		return err
	}
	if err := jsonx.Read(text, out); err != nil {
		return &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The server %s answered %s with something else than was expected: %v.", c.base, path, err),
			Hint:    "is this the address of a Loadstone server, of this version?", Cause: err}
	}
	return nil
}

// get reads a file of the server.
func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.read(ctx, http.MethodGet, path, "", nil)
}

// read makes a request and returns its answer; a refusal is an error.
func (c *client) read(ctx context.Context, method, path, media string, body io.Reader) ([]byte, error) {
	return c.roundTrip(ctx, method, path, media, body, nil)
}

// roundTrip is read, where the answer is not refused and take is there: it is given the answer then.
func (c *client) roundTrip(
	ctx context.Context,
	method, path, media string,
	body io.Reader,
	take func(io.Reader) error,
) (
	[]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	res, err := c.http.Do(req)
	if IsUntrusted(err) {
		return nil, &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The certificate of the server %s is not trusted: %v.", c.base, err),
			Hint: "name its authority with --server-ca FILE (LOADSTONE_SERVER_CA); of a self-signed one, the certificate " +
				"itself", Cause: err}
	}
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The server %s does not answer.",
			c.base),
			Hint: "check the address, and that `loadstone serve` runs there", Cause: err}
	}
	defer func() { _ = res.Body.Close() }()
	if take != nil && res.StatusCode < http.StatusMultipleChoices {
		return nil, take(res.Body)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 256<<20))
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The server %s broke off its answer.", c.base), Cause: err}
	}
	if res.StatusCode >= 300 {
		return nil, terminal.ProblemError(c.base, res.Status, text)
	}
	return text, nil
}

// serverLostError returns the error of a run whose server stopped answering, nil until MaxServerDowntime has passed.
// The outcome of the run is unknown, so the run has not passed.
func serverLostError(s terminal.Settings, away time.Time, what string, err error) error {
	limit := cmp.Or(s.MaxServerDowntime, 2*time.Minute)
	if time.Since(away) <= limit {
		return nil
	}
	e := &engine.Error{
		Code: engine.CodeUnavailable,
		Message: fmt.Sprintf(
			"The server has not answered for %s: giving up on %s, whose end is not known.",
			limit,
			what,
		),
		Hint:  "when the server is back, its page and API say what became of it",
		Cause: err,
	}
	return &terminal.ExitError{Code: terminal.ExitFailed, Err: e}
}

// neverStartedError is the end of a run that was ended before it was started, nil for others: it has no figures.
func neverStartedError(d engine.RunDetail) error {
	if !d.Status.Terminal() || d.Phase != engine.PhaseNone || d.Summary != nil || !d.StartTime.IsZero() {
		return nil
	}
	return &terminal.ExitError{Code: terminal.ExitFailed, Err: query.NotStartedReason(d.Run)}
}

// follow polls the run until its figures are there. A server that is away for
// a moment is asked again; the run goes on without us.
func (c *client) follow(e *terminal.Env, runID string, quiet bool) (*engine.RunDetail, error) {
	background := context.WithoutCancel(e.Ctx)
	show := report.NewProgress(e.Stderr)
	defer show.End()
	stop := interruptStop{e: e, what: "run", stop: func() error {
		return c.do(background, http.MethodPost, "/api/runs/"+url.PathEscape(runID)+"/stop", struct{}{}, nil)
	}}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var away time.Time
	message := ""
	for {
		var detail engine.RunDetail
		err := c.do(stop.context(), http.MethodGet, "/api/runs/"+url.PathEscape(runID), nil, &detail)
		switch {
		case err == nil:
			away = time.Time{}
			if !quiet {
				message = show.Waiting(detail.Waiting, message)
			}
			if detail.Live != nil && !quiet {
				show.Show(detail.Live)
			}
			if detail.Status.Terminal() && detail.Summary != nil &&
				(detail.Phase == engine.PhaseNone || detail.Summary.Operations > 0) {
				detail.Summary.Upgrade() // the server may be older
				return &detail, nil
			}
			if err := neverStartedError(detail); err != nil {
				return nil, err
			}
		case stop.due():
			// The question was broken off, to stop the run at once.
		case engine.HasCode(err, engine.CodeUnavailable):
			if away.IsZero() {
				away = time.Now()
				show.Line("%v", err)
			} else if err := serverLostError(e.Settings, away, "run "+runID, err); err != nil {
				return nil, err
			}
		default:
			return nil, &terminal.ExitError{Code: terminal.ExitFailed, Err: err}
		}
		stop.wait(ticker.C, show)
	}
}

// interruptStop stops what is followed on the first interrupt; a second one ends the process.
type interruptStop struct {
	e    *terminal.Env
	what string
	stop func() error

	requested, acknowledged, announced bool
}

// due reports whether the user has interrupted, and the stop has not been tried yet.
func (s *interruptStop) due() bool { return !s.requested && s.e.Ctx.Err() != nil }

// context is that of a question about what is followed: an interrupt breaks it off,
// since a server whose store hangs answers late.
func (s *interruptStop) context() context.Context {
	if s.requested {
		return context.WithoutCancel(s.e.Ctx)
	}
	return s.e.Ctx
}

// wait waits for the next look, or for the interrupt, and then asks for the stop until
// the server has taken it.
func (s *interruptStop) wait(tick <-chan time.Time, show *report.Progress) {
	if s.requested {
		<-tick
	} else {
		select {
		case <-tick:
		case <-s.e.Ctx.Done():
			s.requested = true
			s.e.Forget()
			show.Line("Stopping the %s; interrupt again to quit at once and leave it to the server.", s.what)
		}
	}
	if !s.requested || s.acknowledged {
		return
	}
	err := s.stop()
	if engine.HasCode(err, engine.CodeConflict) {
		return // it is being started, or has ended meanwhile
	}
	s.acknowledged = err == nil || !engine.HasCode(err, engine.CodeUnavailable)
	if err != nil && !s.announced {
		s.announced = true
		show.Line("The %s could not be stopped: %v", s.what, err)
	}
}
