package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/engine"
)

// healthCommand asks a server on this machine whether it is ready; the image's health check.
type healthCommand struct {
	Listen string `default:"127.0.0.1:8080" env:"LOADSTONE_LISTEN" placeholder:"HOST:PORT" help:"Address that the server listens on."`
}

func (c healthCommand) Run(e *command.Env) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return engine.InvalidField("--listen", fmt.Sprintf("%q is not host:port", c.Listen), "for example 127.0.0.1:8080")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(e.Ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The server does not answer.", Cause: err}
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The server is not ready: " + res.Status + "."}
	}
	_, err = fmt.Fprintln(e.Stdout, "ready")
	return err
}
