package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// HealthCommand asks a server on this machine whether it is ready; the image's health check.
type HealthCommand struct {
	Listen string `default:"127.0.0.1:8080" env:"LOADSTONE_LISTEN" placeholder:"HOST:PORT" help:"Address that the server listens on."`
	CanRun bool   `name:"can-run" help:"Also check that a run can be created."`
}

// Run asks, over TLS where the server sends it there.
func (c HealthCommand) Run(e *terminal.Env) error {
	plain, err := loopbackAddress(c.Listen, false)
	if err != nil {
		return engine.InvalidField("--listen", fmt.Sprintf("%q is not host:port", c.Listen), "for example 127.0.0.1:8080")
	}
	secure, _ := loopbackAddress(c.Listen, true)
	ctx, cancel := context.WithTimeout(e.Ctx, 2*time.Second)
	defer cancel()
	query := "?exclude=nodes,results"
	if c.CanRun {
		query = ""
	}
	status, why, err := getHealth(ctx, plain+"/readyz"+query)
	if err == nil && status == http.StatusPermanentRedirect {
		status, why, err = getHealth(ctx, secure+"/readyz"+query)
	}
	if err != nil {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("No server answers on %s.", c.Listen),
			Hint: "start it with loadstone serve, or name the address that it listens on with --listen", Cause: err}
	}
	if status != http.StatusOK {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The server on %s is not ready: %s", c.Listen,
			cmp.Or(why, fmt.Sprintf("%d %s.", status, http.StatusText(status))))}
	}
	_, err = fmt.Fprintln(e.Stdout, "ready")
	return err
}

// getHealth asks a server, and returns what it says where it is not ready.
func getHealth(ctx context.Context, address string) (status int, why string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", fmt.Errorf("making the request: %w", err)
	}
	// Nothing secret is said, and the answer is believed of whoever listens there, with TLS and without.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12,
		ServerName: operatorName, InsecureSkipVerify: true}} //nolint:gosec // see above
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", fmt.Errorf("asking the server: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	var problem struct{ Detail string }
	if res.StatusCode != http.StatusOK {
		_ = json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&problem) // who answers may be another server
	}
	return res.StatusCode, problem.Detail, nil
}
