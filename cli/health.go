package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// HealthCommand asks a server on this machine whether it is ready; the image's health check.
type HealthCommand struct {
	Listen string `default:"127.0.0.1:8080" env:"LOADSTONE_LISTEN" placeholder:"HOST:PORT" help:"Address that the server listens on."`
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
	status, err := getHealth(ctx, plain)
	if err == nil && status == http.StatusPermanentRedirect {
		status, err = getHealth(ctx, secure)
	}
	if err != nil {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("No server answers on %s.", c.Listen),
			Hint: "start it with loadstone serve, or name the address that it listens on with --listen", Cause: err}
	}
	if status != http.StatusOK {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The server on %s is not ready: %d %s.",
			c.Listen, status, http.StatusText(status))}
	}
	_, err = fmt.Fprintln(e.Stdout, "ready")
	return err
}

func getHealth(ctx context.Context, base string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz?exclude=nodes,results", nil)
	if err != nil {
		return 0, fmt.Errorf("making the request: %w", err)
	}
	// Nothing secret is said, and the answer is believed of whoever listens there, with TLS and without.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12,
		ServerName: operatorName, InsecureSkipVerify: true}} //nolint:gosec // see above
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("asking the server: %w", err)
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}
