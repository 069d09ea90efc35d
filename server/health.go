package server

import (
	"context"
	"net/http"
	"strings"
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

// Readiness says whether a run can be created.
type Readiness interface {
	// CheckNodes is nil when some node takes run workers, or runs may wait for one.
	CheckNodes() error
	// CheckResults is nil when results can be stored.
	CheckResults() error
}

// readiness is the store's last answer, and that of the results.
type readiness struct {
	mu        sync.Mutex
	checkedAt time.Time
	err       error

	results          sync.Mutex
	resultsCheckedAt time.Time
	resultsErr       error
}

// The checks that a probe may leave out of /readyz, as ?exclude= names them.
const (
	checkNodes   = "nodes"
	checkResults = "results"
)

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

// checkResults asks the results once for all who ask within pingCacheTTL.
func (s *Server) checkResults() error {
	if s.opts.Readiness == nil {
		return nil
	}
	r := &s.readiness
	r.results.Lock()
	defer r.results.Unlock()
	if time.Since(r.resultsCheckedAt) >= pingCacheTTL {
		r.resultsErr, r.resultsCheckedAt = s.opts.Readiness.CheckResults(), time.Now()
	}
	return r.resultsErr
}

// checkNodes says why no node takes run workers.
func (s *Server) checkNodes() error {
	if s.opts.Readiness == nil {
		return nil
	}
	return s.opts.Readiness.CheckNodes()
}

// healthz says that the process answers.
func (s *Server) healthz(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(api.Healthy{Status: "ok"})
}

// readyz says whether a run can be created now, and otherwise why not, in words that tell a stranger nothing. Probes
// that ask for less leave checks out: without a node the page still shows where others are added.
func (s *Server) readyz(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	left, err := excluded(c)
	if err != nil {
		return httpx.Write(c, err)
	}
	ready := api.Ready{Status: "ready", Checks: api.ReadyChecks{ControlStore: "ok", Results: "ok", Nodes: s.opts.Nodes()}}
	refuse := func(check, why, hint string, cause error) error {
		httpx.RequestOf(c.UserContext()).Cause = cause
		p := httpx.New(http.StatusServiceUnavailable, engine.CodeUnavailable, why, hint)
		if check != "" {
			p.Errors = []engine.FieldError{{Field: check, Message: why, Hint: hint}}
		}
		return httpx.Write(c, p)
	}
	if s.isStopping() {
		return refuse("", "The server is shutting down.", "", nil)
	}
	if err := s.ping(); err != nil {
		return refuse("control_store", "The control store does not answer, takes no writes, or its schema is not current.",
			"The server's log has the details.", err)
	}
	if left[checkResults] {
		ready.Checks.Results = "excluded"
	} else if err := s.checkResults(); err != nil {
		return refuse(checkResults, "Results cannot be stored: their folder cannot be written to, or its disk is full.",
			"The server's log has the details. A probe that leaves it out asks for /readyz?exclude=results.", err)
	}
	if !left[checkNodes] {
		if err := s.checkNodes(); err != nil {
			return refuse(checkNodes, "No node takes run workers, and runs do not wait for one.",
				"The page Nodes and `loadstone node list` say why. A probe that leaves it out asks for /readyz?exclude=nodes.", err)
		}
	}
	return c.JSON(ready)
}

// excluded are the checks that the request leaves out: exclude=nodes,results.
func excluded(c *fiber.Ctx) (map[string]bool, *httpx.Problem) {
	left := map[string]bool{}
	for _, values := range c.Context().QueryArgs().PeekMulti("exclude") {
		for _, check := range strings.Split(string(values), ",") {
			if check != checkNodes && check != checkResults {
				return nil, httpx.Field("exclude", "no check can be left out under this name",
					"write "+checkNodes+", "+checkResults+", or both with a comma between them")
			}
			left[check] = true
		}
	}
	return left, nil
}
