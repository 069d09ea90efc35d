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
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
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
	Create(ctx context.Context, s engine.Scenario, by engine.Actor) (engine.Run, error)
	Start(ctx context.Context, runID, by string) (engine.Run, error)
	Stop(ctx context.Context, runID, by string) (engine.Run, error)
	// Revoke stops a run that its user has lost the right to; why is a sentence.
	Revoke(ctx context.Context, runID, why string) error
	// ActiveRunIDs are the runs that are live on this server, or being started.
	ActiveRunIDs() []string
	// Enrichments are those under way on this server, by run; RevokeEnrichment is Revoke for one of them.
	Enrichments() map[string]enrichment.Origin
	RevokeEnrichment(ctx context.Context, runID, why string) error
	Delete(ctx context.Context, runID, by string) error
	ChangeLoad(ctx context.Context, runID, by string, to scaling.LoadRequest) (engine.Event, error)
	RetryEnrichment(ctx context.Context, runID string, by engine.Actor) (engine.Enrichment, error)
	StopEnrichment(ctx context.Context, runID, by string) (engine.Enrichment, error)
	CheckConnection(ctx context.Context, driver string, dsn secret.Secret) (target.ServerInfo, error)
	Seconds(ctx context.Context, runID string) ([]engine.MeasuredSecond, error)
	Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error)
}

// UserStore keeps users. There is one admin at least who is not locked out: what would lock out or remove the last
// one is ErrConflict.
type UserStore interface {
	auth.Users
	// ExternalUser returns the user that a provider knows by externalID, made with the name if there is none, and gives
	// it the role; changed tells that it had another. A name that another user has is ErrConflict, and so is a role that
	// would take the last admin away.
	ExternalUser(ctx context.Context, externalID, name string, role store.Role) (u store.User, changed bool, err error)
	// CreateUser makes a user without a password. Names that differ in case alone are one: ErrConflict.
	CreateUser(ctx context.Context, name string, role store.Role) (store.User, error)
	// ListUsers lists all, by name.
	ListUsers(ctx context.Context) ([]store.User, error)
	// ChangeUser sets what is not nil, and returns the user as it is and as it was before. Who is locked out is known by
	// no token any more, until that ends.
	ChangeUser(ctx context.Context, userID string, to store.UserChange) (now, before store.User, err error)
	// DeleteUser removes a user with its tokens, unless it is another than was seen; what the user made stays.
	DeleteUser(ctx context.Context, userID string, was store.ExpectedUser) error
	ListTokens(ctx context.Context, userID, kind string) ([]store.Token, error)
}

// TemplateStore keeps templates.
type TemplateStore interface {
	CreateTemplate(ctx context.Context, t store.Template) (store.Template, error)
	Template(ctx context.Context, id string) (store.Template, error)
	TemplateByName(ctx context.Context, name string) (store.Template, error)
	// ListTemplates returns what a list shows, by name: without sources, feeds and the workload's parameters.
	ListTemplates(ctx context.Context) ([]store.Template, error)
	// UpdateTemplate saves t if t.Version is current, else ErrConflict.
	UpdateTemplate(ctx context.Context, t store.Template) (store.Template, error)
	DeleteTemplate(ctx context.Context, id string) error
}

// ConnectionStore keeps saved connections.
type ConnectionStore interface {
	// SaveConnection saves a connection; one without id is new. A DSN whose password
	// is hidden keeps the saved one, if nothing else of it changed. A builtin is ErrConflict, and so is a Version that is
	// neither 0 nor the one that is saved: whoever read that knows nothing of what somebody else has changed since.
	SaveConnection(ctx context.Context, c store.Connection) (store.Connection, error)
	store.ConnectionFinder
	ListConnections(ctx context.Context) ([]store.Connection, error)
	// DeleteConnection returns ErrInUse while a template, a live run or a sink names it, and ErrConflict for a builtin and
	// for a version that is neither 0 nor the one that is saved, as SaveConnection does.
	DeleteConnection(ctx context.Context, id string, version int64) error
	// OpenDSN returns the unsealed DSN for a reference: by id, by name where there is none, or unsealed.
	OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error)
	// OpenURL returns the unsealed address of a rule.
	OpenURL(ctx context.Context, r engine.Rule) (secret.Secret, error)
	// ResultsConnection is the one to which servers take results; zero where they take none.
	ResultsConnection(ctx context.Context) (store.ResultsConnection, error)
}

// ShareStore keeps links to reports.
type ShareStore interface {
	// CreateShare saves a link; ErrNotFound without its run.
	CreateShare(ctx context.Context, s store.Share, secretSHA256 [32]byte) (store.Share, error)
	// UseShare returns the link of a secret and notes the use; ErrNotFound for one that was ended or never was. One
	// that has expired is returned, and no use is noted.
	UseShare(ctx context.Context, secretSHA256 [32]byte) (store.Share, error)
	// ListShares lists the links of a run, or with runID "" of all runs, newest first, expired ones too.
	ListShares(ctx context.Context, runID string) ([]store.Share, error)
	// RevokeShare removes a link.
	RevokeShare(ctx context.Context, shareID string) error
}

// BaselineStore keeps the baselines of templates.
type BaselineStore interface {
	// Baseline returns the baseline of a template; ErrNotFound without one.
	Baseline(ctx context.Context, templateID string) (store.Baseline, error)
	// SetBaseline makes a run the baseline of its template. ErrNotFound without them; ErrConflict for a run of
	// another template, or one that has not completed.
	SetBaseline(ctx context.Context, b store.Baseline) (store.Baseline, error)
	// DeleteBaseline removes the baseline of a template; harmless without one.
	DeleteBaseline(ctx context.Context, templateID string) error
}

// NoteStore keeps what is written about runs, and their tags.
type NoteStore interface {
	// RunNote returns what was written about a run, with version 0 where nothing was; ErrNotFound without the run.
	RunNote(ctx context.Context, runID string) (store.RunNote, error)
	// SaveRunNote saves a note. Version is that which was edited; another is ErrConflict, and the error says who was
	// faster.
	SaveRunNote(ctx context.Context, n store.RunNote) (store.RunNote, error)
	// TagRun sets the tags of a run, in place of was where that is not nil: others are ErrConflict. A run that is live
	// has those that it was started with: ErrConflict.
	TagRun(ctx context.Context, runID string, tags, was map[string]string) error
}

// GrantStore keeps who started what.
type GrantStore interface {
	// SaveStartGrant saves a grant in place of the one before, which it returns too; ErrNotFound without its run or
	// matrix, with which it goes, ErrConflict where that is not PREPARED any more.
	SaveStartGrant(ctx context.Context, g store.StartGrant) (store.GrantChange, error)
	// ResolveStart says what became of the start that a grant was for. After one that was begun the grant stands, whoever
	// has tried meanwhile; after another one the grant before is back, unless somebody else's is there by now.
	ResolveStart(ctx context.Context, g store.GrantChange, begun bool) error
	// StartGrant returns the grant of a run, or else of its matrix; ErrNotFound for what was started by no user.
	StartGrant(ctx context.Context, runID, matrixID string) (store.StartGrant, error)
}

// MarkStore keeps the marks of runs.
type MarkStore interface {
	// ListMarks lists those of a run by their moments; none for a run that is not there.
	ListMarks(ctx context.Context, runID string) ([]engine.Mark, error)
	// AddMark keeps a mark under the id that it returns; MadeBy says who. A run that is not there is
	// ErrNotFound, one that has MaxMarks already ErrConflict.
	AddMark(ctx context.Context, m engine.Mark) (engine.Mark, error)
	// ChangeMark changes moment and text, in place of those of was where that is not nil: others are ErrConflict.
	// ChangedBy says who. It returns the mark as it is and as it was before.
	ChangeMark(ctx context.Context, m engine.Mark, was *store.ExpectedMark) (now, before engine.Mark, err error)
	// DeleteMark removes a mark, as ChangeMark changes one, and returns it.
	DeleteMark(ctx context.Context, runID, markID string, was *store.ExpectedMark) (gone engine.Mark, err error)
}

// RunViewStore keeps views of the list of runs.
type RunViewStore interface {
	// RunViews lists a user's and those that are shared, by name and owner.
	RunViews(ctx context.Context, userID string) ([]store.RunView, error)
	RunView(ctx context.Context, viewID string) (store.RunView, error)
	// AddRunView makes a view of OwnerID's, which is ErrNotFound if there is no such user. A name that the user has
	// already, and a view too many, is ErrConflict.
	AddRunView(ctx context.Context, v store.RunView) (store.RunView, error)
	// ChangeRunView sets name, query and whether it is shared. Version is that which was edited; another is ErrConflict,
	// and the error says who was faster. What belongs to nobody stays shared.
	ChangeRunView(ctx context.Context, v store.RunView) (store.RunView, error)
	DeleteRunView(ctx context.Context, viewID string) error
}

// Store is the part of the control store that the API reads and writes itself.
type Store interface {
	TemplateStore
	ConnectionStore
	UserStore
	store.Audit
	ShareStore
	BaselineStore
	NoteStore
	GrantStore
	MarkStore
	RunViewStore
	auth.RightsStore
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
	// Preflight plans a run before its load. With trial, what the run would write is executed and undone. Its answer is
	// written as JSON as it is.
	Preflight func(ctx context.Context, s engine.Scenario, trial bool) (any, error)
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
				{Name: scheduleTag, Description: "Runs that start at the times of a cron expression."},
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

// IsRoute reports whether a path is that of a route as it stands, without a parameter.
func (a *API) IsRoute(path string) bool {
	return slices.ContainsFunc(a.routes, func(r Route) bool { return r.Path == path })
}

// Allowed returns the methods that an address takes, for 405 answers; none for an unknown address.
// An address that is described by itself is not an example of one with parameters:
// so the document reads.
func (a *API) Allowed(path string) []string {
	var methods []string
	path = strings.TrimSuffix(path, "/")
	steps := strings.Split(path, "/")
	literal := a.IsRoute(path)
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

// retryAfterSeconds is in how many seconds what is not there now, or has no place, is worth another attempt.
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
			if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
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
