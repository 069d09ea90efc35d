// Package api holds the handlers of the HTTP API, by noun, and the document that
// describes them. REST operations are typed (huma), so the document cannot drift
// from them; sockets and downloads are plain Fiber routes that are described by hand.
//
// Every operation takes its services through interfaces declared here. Secrets
// never leave: DSNs are redacted on the way out, whatever the store returned.
package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humafiber"
	"github.com/gofiber/fiber/v2"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/live"
	"github.com/loadstone-db/loadstone/server/openapi"
)

// Runs is the orchestrator as the API needs it.
type Runs interface {
	live.Source
	Create(ctx context.Context, s engine.Scenario, by string) (engine.Run, error)
	Start(ctx context.Context, runID, by string) (engine.Run, error)
	Stop(ctx context.Context, runID, by string) (engine.Run, error)
	// ActiveRunIDs are the runs that are live on this server, or being started.
	ActiveRunIDs() []string
	Delete(ctx context.Context, runID, by string) error
	ChangeLoad(ctx context.Context, runID, by string, to scaling.LoadRequest) (engine.Event, error)
	RetryEnrichment(ctx context.Context, runID, by string) (engine.Enrichment, error)
	StopEnrichment(ctx context.Context, runID, by string) (engine.Enrichment, error)
	CheckConnection(ctx context.Context, driver string, dsn secret.Secret) (target.ServerInfo, error)
	Seconds(ctx context.Context, runID string) ([]engine.MeasuredSecond, error)
	Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error)
}

// Store is the part of the control store that the API reads and writes itself.
type Store interface {
	store.Templates
	store.Connections
	store.Users
	store.Audit
	store.RunArtifacts
	store.Grants
	store.Marks
	store.RunViews
	Run(ctx context.Context, runID string) (engine.Run, error)
	ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error)
	LiveRuns(ctx context.Context) ([]engine.Run, error)
	SeriesStore
	// EventPage returns limit events after a sequence, in their order, and how many the run has.
	EventPage(ctx context.Context, runID string, after int64, limit int) (events []engine.Event, total int64, err error)
	// ArtifactPage returns limit artifacts whose names come after a name, in the order of names,
	// and how many the run has.
	ArtifactPage(ctx context.Context, runID, after string, limit int) (artifacts []engine.Artifact, total int64, err error)
	Logs(ctx context.Context, runID string, afterSeq int64, level engine.LogLevel, limit int) ([]engine.LogEntry, error)
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	Ping(ctx context.Context) error
}

// Files opens the stored parts of a run.
type Files interface {
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
}

// CSVWriter is an optional ability of Files: every execution of a run as CSV.
type CSVWriter interface {
	WriteCSV(ctx context.Context, runID string, w io.Writer) error
}

// Info is what GET /api/info tells.
type Info struct {
	Version           string      `json:"version"`
	GoVersion         string      `json:"go_version"`
	StartedAt         engine.Time `json:"started_at"`
	DataDirFreeBytes  *int64      `json:"data_dir_free_bytes" doc:"Free space where results are kept; null when unknown."`
	ControlStore      string      `json:"control_store" enum:"embedded,external"`
	Playground        bool        `json:"playground" doc:"Whether the built-in sample Postgres is there."`
	Nodes             int         `json:"nodes" doc:"Nodes that can host run workers now."`
	ConnectedBrowsers int         `json:"websocket_clients"`
}

// Services are what the handlers work with.
type Services struct {
	Runs    Runs
	Store   Store
	Files   Files
	Plugins Plugins
	// Matrices are nil on a server that cannot run them.
	Matrices Matrices
	// Nodes are nil where nobody asks about them.
	Nodes Nodes
	// Preflight plans a run without loading anything. Its answer is written as JSON as it is.
	Preflight func(ctx context.Context, s engine.Scenario) (any, error)
	// PreflightSample is a value of the type that Preflight answers, for the document.
	PreflightSample any
	Info            func(ctx context.Context) Info
	Auth            *auth.Service
	Guard           *auth.Guard
	Hub             *live.Hub
	Log             zerolog.Logger
	// Secrets tell the passwords in connection strings from the rest.
	Secrets target.Secrets
	// Streams is the context of downloads, which outlive their handlers; it ends with the server.
	Streams context.Context
	// URL is the address under which browsers reach the server.
	URL func() string
	// SignInLink makes a link that signs the admin in.
	SignInLink func(ctx context.Context) (string, error)
	// UploadFor bounds how long an uploaded plugin may take to arrive.
	UploadFor time.Duration
	// Provider is the name of the sign-in provider; empty without one.
	Provider string
	// RegisterMore registers handlers of other packages.
	RegisterMore []func(*API)
	Version      string
}

// API is the set of handlers on one Fiber app.
type API struct {
	Services
	huma    huma.API
	gate    *httpx.Gate // requests that work on executions, or on a target
	exports *httpx.Gate // downloads as CSV, which last as long as the client takes
	audit   *auth.AuditLog
	uploads chan struct{} // a place for each file that is arriving
	routes  []Route
}

// Route is one address of the API.
type Route struct{ Method, Path, Operation string }

// MaxBody is the size limit of a JSON body, in bytes.
const MaxBody = 1 << 20

// The tags of operations, in the order of the document.
const (
	tagRuns        = "Runs"
	tagMatrices    = "Matrices"
	tagTemplates   = "Templates"
	tagConnections = "Connections"
	tagPlugins     = "Plugins"
	tagNodes       = "Nodes"
	tagServer      = "Server"
	tagOld         = "Old names"
)

// Register adds every route of the API to the app. It is called once per app.
func Register(app *fiber.App, s Services) *API {
	httpx.InstallHuma()
	schemas := openapi.NewRegistry()
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Loadstone", Version: s.Version,
				Description: "Find out what a database table can take. Errors are problem details (RFC 9457) with a stable " +
					"`code`, a `hint`, and the wrong fields in `errors`.",
				License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Servers: []*huma.Server{{URL: "/"}},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "An API token, lst_…"},
				"session": {Type: "apiKey", In: "cookie", Name: auth.CookieName,
					Description: "The session of a browser; over TLS its name is " +
						"__Host-" + auth.CookieName + "."},
			}},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
			Tags: []*huma.Tag{
				{Name: tagRuns, Description: "Create, start, watch, stop and read runs."},
				{Name: tagMatrices, Description: "One workload on several targets, one after another."},
				{Name: tagTemplates, Description: "Saved configurations."},
				{Name: tagConnections, Description: "Saved databases. Passwords are written, never read back."},
				{Name: tagPlugins, Description: "Workloads and table types."},
				{Name: tagNodes, Description: "The machines that carry load: which there are, who may be one, and what became " +
					"of them."},
				{Name: "Tables", Description: "Derived tables of results, and SQL over them."},
				{Name: "Streams", Description: "Continuous queries, their sources and sinks."},
				{Name: "Sign-in", Description: "Sessions, passwords and API tokens."},
				{Name: "Users", Description: "Who may use the server, and what for; for admins."},
				{Name: "Audit", Description: "Who did what; for admins."},
				{Name: tagServer, Description: "The server itself."},
				{Name: tagOld, Description: "Earlier addresses of the same handlers."},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": openapi.JSON, "json": openapi.JSON},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
	a := &API{Services: s, audit: auth.NewAuditLog(s.Streams, s.Store, s.Log), gate: httpx.NewGate(2, 34, 10),
		exports: httpx.NewGate(4, 16, 3),
		uploads: make(chan struct{}, maxUploads)}
	app.Use("/api", a.checkRequest)
	app.Use("/ws", a.checkRequest)
	a.huma = humafiber.New(app, config)
	a.registerServer(app)
	a.registerTemplates()
	a.registerConnections()
	a.registerPlugins(app)
	a.registerRuns(app, "/api/runs", false)
	a.registerMatrices()
	a.registerNodes()
	a.registerRuns(app, "/api/tests", true)
	a.registerSockets(app)
	for _, register := range s.RegisterMore {
		register(a)
	}
	openapi.Finish(schemas)
	return a
}

// OpenAPI returns the document that describes the API.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }

// Allowed returns the methods that an address takes, for 405 answers; none for an unknown address.
// An address that is described by itself is not an example of one with parameters:
// so the document reads.
func (a *API) Allowed(path string) []string {
	var methods []string
	path = strings.TrimSuffix(path, "/")
	steps := strings.Split(path, "/")
	literal := slices.ContainsFunc(a.routes, func(r Route) bool { return r.Path == path })
	for _, r := range a.routes {
		if r.Path == path || !literal && matches(strings.Split(r.Path, "/"), steps) {
			methods = append(methods, r.Method)
			if r.Method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

func matches(pattern, steps []string) bool {
	if len(pattern) != len(steps) {
		return false
	}
	for i, p := range pattern {
		if p != steps[i] && (!strings.HasPrefix(p, "{") || steps[i] == "") {
			return false
		}
	}
	return true
}

// Operation is what an address is for, "start-run", and what stands in the address for its id; "" where there is none.
func (a *API) Operation(method, path string) (operation, object string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	steps := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for _, r := range a.routes {
		pattern := strings.Split(r.Path, "/")
		if r.Method != method || !matches(pattern, steps) || operation != "" && strings.Contains(r.Path, "{") {
			continue
		}
		operation, object = r.Operation, ""
		for i, p := range pattern {
			if strings.HasPrefix(p, "{") {
				object = unescaped(steps[i])
			}
		}
	}
	return operation, object
}

// op describes an operation; errors lists the statuses it may answer beyond those that
// every address under /api has: an address that cannot be read (400), a caller who is not
// known (401), a parameter that cannot be used (422), 500, and a store that is away (503).
func op(method, path, id, tag, summary string, errors ...int) huma.Operation {
	o := huma.Operation{
		OperationID: id, Method: method, Path: path, Tags: []string{tag}, Summary: summary,
		Errors: append([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusUnprocessableEntity,
			http.StatusServiceUnavailable}, errors...),
		// The size is judged before, where the answer can still be a clean one.
		MaxBodyBytes: 2 * MaxBody, BodyReadTimeout: -2,
	}
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		o.Errors = append(o.Errors, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	case http.MethodDelete:
		o.Errors = append(o.Errors, http.StatusForbidden)
	}
	return o
}

// retryAfterSeconds is in how many seconds what is not there now is worth another attempt.
const retryAfterSeconds = "5"

// handle registers a typed operation. Its errors become problems here, in one place.
func handle[I, O any](a *API, o huma.Operation, h func(ctx context.Context, in *I) (*O, error)) {
	a.routes = append(a.routes, Route{o.Method, o.Path, o.OperationID})
	huma.Register(a.huma, o, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			p := httpx.From(err).Stamp(httpx.RequestOf(ctx))
			var with huma.HeadersError
			if errors.As(err, &with) {
				return nil, huma.ErrorWithHeaders(p, with.GetHeaders())
			}
			if p.Status == http.StatusServiceUnavailable {
				return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {retryAfterSeconds}})
			}
			return nil, p
		}
		return out, nil
	})
}

// raw registers a plain Fiber handler and describes it.
func (a *API) raw(app *fiber.App, o huma.Operation, h fiber.Handler) {
	a.routes = append(a.routes, Route{o.Method, o.Path, o.OperationID})
	path := strings.NewReplacer("{", ":", "}", "").Replace(o.Path)
	app.Add(o.Method, path, h)
	if o.Hidden {
		return
	}
	if o.Responses == nil {
		o.Responses = map[string]*huma.Response{}
	}
	openapi.DescribeProblems(a.huma.OpenAPI(), o.Responses, append(o.Errors, http.StatusInternalServerError)...)
	o.Errors = nil
	a.huma.OpenAPI().AddOperation(&o)
}

// body wraps a JSON answer.
type body[T any] struct{ Body T }

// nothing is the answer without a body (204).
type nothing struct{}

func (a *API) identity(ctx context.Context) auth.Identity {
	id, _ := auth.IdentityOf(ctx)
	return id
}
