package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	pingTimeout = 2 * time.Second
	// pingCacheTTL is how long an answer of the store holds: anybody may ask.
	pingCacheTTL = time.Second
)

// readiness is the store's last answer.
type readiness struct {
	mu        sync.Mutex
	checkedAt time.Time
	err       error
}

// ping asks the store once for all who ask within pingFor.
func (s *Server) ping() error {
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checkedAt) < pingCacheTTL {
		return r.err
	}
	ctx, cancel := context.WithTimeout(s.streams, pingTimeout)
	defer cancel()
	r.err = s.opts.Store.Ping(ctx)
	r.checkedAt = time.Now()
	return r.err
}

// healthz says that the process answers.
func (s *Server) healthz(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(api.Healthy{Status: "ok"})
}

// readyz says whether the server can do its work now, without saying why not to a stranger.
func (s *Server) readyz(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	nodes := s.opts.Nodes()
	var p *httpx.Problem
	switch err := s.ping(); {
	case s.isStopping():
		p = httpx.New(http.StatusServiceUnavailable, engine.CodeUnavailable, "The server is shutting down.", "")
	case err != nil:
		httpx.RequestOf(c.UserContext()).Cause = err
		p = httpx.New(http.StatusServiceUnavailable, engine.CodeUnavailable,
			"The control store does not answer, or its schema is not current.", "The server's log has the details.")
	default:
		// Without a node too: on this server's page nodes are added and let take work again, and
		// runs that wait for nodes are seen.
		return c.JSON(api.Ready{Status: "ready", Checks: api.ReadyChecks{ControlStore: "ok", Nodes: nodes}})
	}
	return httpx.Write(c, p)
}
