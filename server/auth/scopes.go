package auth

import (
	"path"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The scopes of API tokens. Each narrows what the token's user may; none widens it.
const (
	// ScopeRead reads what everybody who is signed in may read.
	ScopeRead = "read"
	// ScopeRun reads, and does what a pipeline does with runs: it checks, starts, steers, marks and stops them.
	ScopeRun = "run"
	// ScopeMetrics reads metrics: /metrics, and PromQL below /prometheus. Nothing else is answered.
	ScopeMetrics = "metrics"
	// ScopeWrite may what an operator may.
	ScopeWrite = "write"
	// ScopeAdmin may make and revoke tokens, which else a session alone may, and what admins decide.
	ScopeAdmin = "admin"
)

// runScopeRequests are the requests that change something and are for a token of the scope run, beside reading. A
// segment * stands for any. What deletes, approves, or changes what others made is not among them.
var runScopeRequests = [...]string{
	"POST /api/preflight",
	"POST /api/runs", "POST /api/runs/*/start", "POST /api/runs/*/stop",
	"POST /api/tests", "POST /api/tests/*/start", "POST /api/tests/*/stop", "POST /api/tests/from-template/*",
	"POST /api/matrices", "POST /api/matrices/*/start", "POST /api/matrices/*/stop",
	"POST /api/runs/*/enrichment/retry", "POST /api/runs/*/enrichment/stop",
	"PUT /api/runs/*/note", "PUT /api/runs/*/tags",
	"POST /api/v1/runs/*/marks", "PUT /api/v1/runs/*/marks/*", "DELETE /api/v1/runs/*/marks/*",
	"PUT /api/v1/runs/*/load",
}

func isRunRequest(method, address string) bool {
	for _, pattern := range runScopeRequests {
		if ok, _ := path.Match(pattern, method+" "+address); ok {
			return true
		}
	}
	return false
}

// isMetricsRequest tells the addresses of metrics.
func isMetricsRequest(address string) bool {
	return address == "/metrics" || strings.HasPrefix(address, "/prometheus/")
}

// scopeError is why the caller may not make a request, as far as its role and the scope of its token go; nil when it
// may. Handlers ask for more: who is an admin, whose a thing is.
func (i Identity) scopeError(method, address string) error {
	token, scope := i.Token.Kind == KindAPI, i.Token.Scope
	if token && scope == ScopeMetrics && !isMetricsRequest(address) {
		return &engine.Error{Code: engine.CodeForbidden, Message: "This token may only read metrics.",
			Hint: "It is for /metrics and for PromQL below /prometheus. Use one with the scope read or run."}
	}
	if safeMethod(method) || ReadsByPost(address) {
		return nil
	}
	if i.User.Role == store.RoleViewer {
		if i.Token.Kind == KindSession && isOwnResource(address) {
			return nil
		}
		return &engine.Error{Code: engine.CodeForbidden, Message: "A viewer looks and changes nothing.",
			Hint: "An admin can make you an operator: Settings, Users."}
	}
	switch {
	case !token || scope == ScopeWrite || scope == ScopeAdmin:
		return nil
	case scope == ScopeRun && isRunRequest(method, address):
		return nil
	case scope == ScopeRun:
		return &engine.Error{Code: engine.CodeForbidden, Message: "This token may start and stop runs, and not do this.",
			Hint: "Use one with the scope write, or admin where an admin is asked for."}
	default:
		return &engine.Error{Code: engine.CodeForbidden, Message: "This token may only read.",
			Hint: "Use one with the scope run, to start and stop runs, or write."}
	}
}
