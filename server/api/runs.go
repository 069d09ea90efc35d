package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

type runCreate struct {
	Body struct {
		ScenarioInput
		Start             bool       `json:"start,omitempty" doc:"Start it at once."`
		ConfirmProduction auth.Names `json:"confirm_production,omitempty"`
	}
}

type runFromTemplate struct {
	IDInput
	Body *struct {
		Set               map[string]any `json:"set,omitempty" maxProperties:"200"`
		Start             bool           `json:"start,omitempty"`
		ConfirmProduction auth.Names     `json:"confirm_production,omitempty"`
	}
}

type preflightInput struct {
	Body struct {
		ScenarioInput
		Start             bool       `json:"start,omitempty" doc:"Ignored; accepted so that the body of POST /api/runs can be sent as it is."`
		ConfirmProduction auth.Names `json:"confirm_production,omitempty" doc:"On production, what the run would write is tried, and undone, only when its connections are named here."`
		Trial             *bool      `json:"trial,omitempty" doc:"Whether what the run would write is tried, and undone. Yes when left out."`
	}
}

type runList struct {
	Status     []string  `query:"status" enum:"PREPARED,RUNNING,STOPPING,CANCELLING,COMPLETED,FAILED,CANCELLED" doc:"Comma separated."`
	TemplateID string    `query:"template_id" maxLength:"128"`
	Search     string    `query:"search" maxLength:"200" doc:"Part of the run's name, in any case."`
	Since      time.Time `query:"since" doc:"RFC 3339."`
	Until      time.Time `query:"until" doc:"RFC 3339."`
	Tag        []string  `query:"tag,explode" maxItems:"20" doc:"key:value; may be repeated, all must match."`
	Latest     bool      `query:"latest_of_template" doc:"Only the newest run of each template."`
	Thresholds string    `query:"thresholds" enum:"passed,failed" doc:"Only runs whose thresholds were judged so."`
	Sort       string    `query:"sort" enum:"created,name,qps,p50_ms,p95_ms,p99_ms,error_rate,total_ops,length,ended,status,validity,created_by,connections" default:"created" doc:"Runs without the figure come last."`
	Order      string    `query:"order" enum:"asc,desc" default:"desc"`
	Limit      int       `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor     string    `query:"cursor" maxLength:"500" doc:"next_cursor of the page before, in the same order."`
}

type seriesInput struct {
	IDInput
	WorkerID  string  `query:"worker_id" maxLength:"128" doc:"One run worker, or * for all of them; without it the whole run."`
	From      float64 `query:"from_seconds" minimum:"0" maximum:"1000000000" doc:"Only points from this elapsed second on."`
	Until     float64 `query:"until_seconds" minimum:"0" maximum:"1000000000" doc:"Only points up to this elapsed second; 0 means all."`
	MaxPoints int     `query:"max_points" minimum:"10" maximum:"10000" default:"3600" doc:"How many points to answer about. Where there are more seconds, each point stands for several."`
}

// Series is a run's time series, oldest first.
type Series struct {
	// ResolutionSeconds is what one point stands for.
	ResolutionSeconds float64      `json:"resolution_seconds" doc:"How many seconds a point stands for. Of several, rates, P50 and mean are their means, P95, P99 and maximum the highest, the histogram is null, and the rest is that of the last second."`
	Points            SeriesPoints `json:"points"`
}

// All run workers together may have workerPoints times as many points, at most mostWorkerPoints.
const (
	workerPointsFactor = 5
	maxWorkerPoints    = 20_000
)

// SeriesPoints are the run's seconds, or those of its run workers.
type SeriesPoints struct {
	Run     []engine.Point
	Workers []store.WorkerPoint
}

// MarshalJSON writes whichever was asked for; neither is an empty list.
func (p SeriesPoints) MarshalJSON() ([]byte, error) {
	switch {
	case p.Run != nil:
		return json.Marshal(p.Run)
	case p.Workers != nil:
		return json.Marshal(p.Workers)
	}
	return []byte("[]"), nil
}

// Schema describes both forms.
func (SeriesPoints) Schema(r huma.Registry) *huma.Schema {
	list := func(t reflect.Type) *huma.Schema {
		return &huma.Schema{Type: huma.TypeArray, Items: r.Schema(t, true, "")}
	}
	return &huma.Schema{AnyOf: []*huma.Schema{list(reflect.TypeFor[engine.Point]()),
		list(reflect.TypeFor[store.WorkerPoint]())}}
}

type logsInput struct {
	IDInput
	After int64  `query:"after" minimum:"0" maximum:"9007199254740991" doc:"Only lines whose seq is greater."`
	Level string `query:"level" enum:"INFO,WARNING,ERROR,CRITICAL" doc:"This level and those above it."`
	Limit int    `query:"limit" minimum:"1" maximum:"5000" default:"500"`
}

// LogPage is a part of a run's log, oldest first.
type LogPage struct {
	Logs    []engine.LogEntry `json:"logs"`
	LastSeq int64             `json:"last_seq" doc:"Give it as after to read on."`
}

func (a *API) registerRuns(app *fiber.App, base string, old bool) {
	describe := func(o huma.Operation) huma.Operation {
		if old {
			o.OperationID = "tests-" + o.OperationID
			o.Tags = []string{tagOld}
			o.Deprecated = true
		}
		return o
	}
	handle(a, describe(op(http.MethodGet, base, "list-runs", tagRuns, "List runs, newest first")), a.listRuns)
	create := describe(op(http.MethodPost, base, "create-run", tagRuns, "Create a run from a template or a scenario",
		http.StatusNotFound, http.StatusConflict))
	create.DefaultStatus = http.StatusCreated
	handle(a, create, a.createRun)
	if old {
		from := describe(op(http.MethodPost, base+"/from-template/{id}", "create-run-from-template", tagRuns,
			"Create a run from a template", http.StatusNotFound, http.StatusConflict))
		from.DefaultStatus = http.StatusCreated
		handle(a, from, a.createFromTemplate)
	} else {
		pre := op(http.MethodPost, "/api/preflight", "preflight", tagRuns, "Plan a run before its load",
			http.StatusNotFound, http.StatusTooManyRequests)
		pre.Description = "Takes the body of POST /api/runs; answers the frozen statements and the checks, each with its " +
			"fix. With allow_writes, a handful of operations of each writing statement are executed and rolled back; on " +
			"connections that are production only where confirm_production names them, and nowhere with trial: false."
		if a.PreflightSample != nil {
			pre.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
				fiber.MIMEApplicationJSON: {Schema: a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(a.PreflightSample),
					true, "Preflight")}}}}
		}
		handle(a, pre, Throttled(a, a.preflight))
	}
	handle(a, describe(op(http.MethodGet, base+"/{id}", "get-run", tagRuns,
		"Read a run with everything that belongs to it", http.StatusNotFound)), a.getRun)
	handle(a, describe(op(http.MethodPost, base+"/{id}/start", "start-run", tagRuns, "Start a prepared run",
		http.StatusNotFound, http.StatusConflict)), a.startRun)
	handle(a, describe(op(http.MethodPost, base+"/{id}/stop", "stop-run", tagRuns, "Stop a run and drain it",
		http.StatusNotFound, http.StatusConflict)), a.stopRun)
	remove := describe(op(http.MethodDelete, base+"/{id}", "delete-run", tagRuns, "Delete a run and its executions",
		http.StatusNotFound, http.StatusConflict))
	remove.DefaultStatus = http.StatusNoContent
	handle(a, remove, a.deleteRun)
	handle(a, describe(op(http.MethodGet, base+"/{id}/timeseries", "run-timeseries", tagRuns, "The run second by second",
		http.StatusNotFound)), a.series)
	handle(a, describe(op(http.MethodGet, base+"/{id}/logs", "run-logs", tagRuns, "The run's log", http.StatusNotFound)),
		a.logs)
	handle(a, describe(op(http.MethodGet, base+"/{id}/summary", "run-summary", tagRuns, "The exact figures of a "+
		"finished run", http.StatusNotFound, http.StatusConflict)), a.summary)
	if !old {
		handle(a, op(http.MethodGet, base+"/{id}/events", "run-events", tagRuns, "The run's control events",
			http.StatusNotFound), a.events)
		handle(a, op(http.MethodGet, base+"/{id}/artifacts", "run-artifacts", tagRuns, "The parts of the run's record",
			http.StatusNotFound), a.artifacts)
		handle(a, op(http.MethodGet, base+"/{id}/warehouse", "run-warehouse", tagRuns,
			"The warehouse of the run, poll by poll", http.StatusNotFound), a.warehouse)
		handle(a, op(http.MethodGet, base+"/{id}/enrichment", "run-enrichment", tagRuns,
			"What the target's query history says of the run", http.StatusNotFound), a.enrichment)
		retry := op(http.MethodPost, base+"/{id}/enrichment/retry", "retry-enrichment", tagRuns,
			"Ask the query history again, in the background", http.StatusNotFound, http.StatusConflict)
		retry.DefaultStatus = http.StatusAccepted
		handle(a, retry, a.retryEnrichment)
		handle(a, op(http.MethodPost, base+"/{id}/enrichment/stop", "stop-enrichment", tagRuns,
			"Stop asking the query history; what was found is kept", http.StatusNotFound, http.StatusConflict), a.stopEnrichment)
		handle(a, op(http.MethodGet, base+"/{id}/seconds", "run-seconds", tagRuns,
			"The measurement second by second, with its distributions", http.StatusNotFound, http.StatusConflict,
			http.StatusTooManyRequests), Throttled(a, a.seconds))
		handle(a, op(http.MethodGet, "/api/compare", "compare-runs", tagRuns,
			"Compare runs: differences, how sure they are, and a verdict", http.StatusNotFound, http.StatusConflict,
			http.StatusTooManyRequests), Throttled(a, a.compare))
	}
	download := describe(op(http.MethodGet, base+"/{id}/executions", "run-executions", tagRuns,
		"Download every recorded execution", http.StatusNotFound, http.StatusTooManyRequests))
	download.Description = "A zip of the Parquet parts; `part` names one of them; `format=csv` is a table of all."
	a.raw(app, describeDownload(download), a.executions)
}

func (a *API) listRuns(ctx context.Context, in *runList) (*body[store.RunList], error) {
	f := store.RunFilter{TemplateID: in.TemplateID, Search: in.Search, Since: in.Since, Until: in.Until,
		LatestOfTemplate: in.Latest, Ascending: in.Order == "asc", Page: store.Page{Limit: in.Limit, Cursor: in.Cursor}}
	if in.Sort != "created" {
		f.Sort = store.RunSort(in.Sort)
	}
	if in.Thresholds != "" {
		passed := in.Thresholds == "passed"
		f.Passed = &passed
	}
	for _, s := range in.Status {
		f.Statuses = append(f.Statuses, engine.Status(s))
	}
	for _, tag := range in.Tag {
		key, value, ok := strings.Cut(tag, ":")
		if !ok || key == "" {
			return nil, engine.InvalidField("tag", "is not key:value", "for example tag=ticket:PERF-1")
		}
		if f.Tag == nil {
			f.Tag = map[string]string{}
		}
		f.Tag[key] = value
	}
	list, err := a.Store.ListRuns(ctx, f)
	if err != nil {
		return nil, err
	}
	rows := make([]store.RunRow, len(list.Runs))
	for i, row := range list.Runs {
		row.Run = a.hideRun(row.Run)
		rows[i] = row
	}
	list.Runs = rows
	return &body[store.RunList]{list}, nil
}

func (a *API) createRun(ctx context.Context, in *runCreate) (*body[engine.Run], error) {
	return a.create(ctx, in.Body.ScenarioInput, in.Body.Start, in.Body.ConfirmProduction)
}

func (a *API) createFromTemplate(ctx context.Context, in *runFromTemplate) (*body[engine.Run], error) {
	input := ScenarioInput{TemplateID: in.ID}
	start, typed := false, auth.Names(nil)
	if in.Body != nil {
		input.Set, start, typed = in.Body.Set, in.Body.Start, in.Body.ConfirmProduction
	}
	return a.create(ctx, input, start, typed)
}

func (a *API) create(ctx context.Context, in ScenarioInput, start bool, typed auth.Names) (*body[engine.Run],
	error) {
	s, err := a.resolve(ctx, in)
	var production []store.Connection
	if err == nil {
		production, err = a.mayRun(ctx, s, start, typed)
	}
	if err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	run, err := a.Runs.Create(ctx, s, engine.Actor{ID: user.UserID, Name: user.Name})
	if err != nil {
		return nil, err
	}
	a.audit.Record(ctx, user.UserID, "run.create", run.RunID, run.RunName)
	if start {
		started, err := startAs(ctx, a, run.RunID, "", production, a.Runs.Start)
		if err != nil {
			return nil, err
		}
		a.audit.Record(ctx, user.UserID, "run.start", run.RunID, run.RunName)
		run = started
	}
	return &body[engine.Run]{a.hideRun(run)}, nil
}

func (a *API) preflight(ctx context.Context, in *preflightInput) (*body[any], error) {
	s, err := a.resolve(ctx, in.Body.ScenarioInput)
	var production []store.Connection
	if err == nil {
		production, err = a.authorizer().AuthorizeUse(ctx, a.identity(ctx).User, s)
	}
	if err != nil {
		return nil, err
	}
	if a.Preflight == nil {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "This server cannot plan runs.",
			Hint: "Ask a server that hosts runs."}
	}
	// The trial writes, if only until it is undone: production is confirmed for that as for a load.
	asked := in.Body.Trial == nil || *in.Body.Trial
	trial := asked && auth.CheckConfirmed(production, in.Body.ConfirmProduction) == nil
	found, err := a.Preflight(ctx, s, trial)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, &engine.Error{Code: engine.CodeTarget, Cause: err,
			Message: "The database has not answered all that the check asks, and the time for it is over.",
			Hint:    "It, or the way to it, is slow, or busy with something else: try again. A run waits longer."}
	}
	if err != nil {
		return nil, err
	}
	return &body[any]{found}, nil
}

// exists answers whether there is such a run, cheaply.
func (a *API) exists(ctx context.Context, id string) error {
	if !wellFormedID(id) {
		return httpx.NotFound("run", id)
	}
	if a.Runs.LiveState(id) != nil {
		return nil
	}
	_, err := a.Store.Run(ctx, id)
	return notFoundAs(err, "run", id)
}

func (a *API) getRun(ctx context.Context, in *IDInput) (*body[engine.RunDetail], error) {
	d, err := a.detail(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &body[engine.RunDetail]{d}, nil
}

func (a *API) detail(ctx context.Context, id string) (engine.RunDetail, error) {
	if !wellFormedID(id) {
		return engine.RunDetail{}, httpx.NotFound("run", id)
	}
	d, err := a.Runs.Detail(ctx, id)
	if err != nil {
		return d, notFoundAs(err, "run", id)
	}
	d.Run = a.hideRun(d.Run)
	d.Workers, d.Artifacts, d.Events = orEmpty(d.Workers), orEmpty(d.Artifacts), orEmpty(d.Events)
	return d, nil
}

// orEmpty makes a missing list an empty one: pages iterate over it.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (a *API) startRun(ctx context.Context, in *startInput) (*body[engine.Run], error) {
	production, err := a.mayStart(ctx, in.ID, in.confirmed())
	if err != nil {
		return nil, err
	}
	return a.change(ctx, in.ID, "run.start", func(ctx context.Context, id, _ string) (engine.Run, error) {
		return startAs(ctx, a, id, "", production, a.Runs.Start)
	})
}

func (a *API) stopRun(ctx context.Context, in *IDInput) (*body[engine.Run], error) {
	return a.change(ctx, in.ID, "run.stop", a.Runs.Stop)
}

func (a *API) change(ctx context.Context, id, action string,
	do func(context.Context, string, string) (engine.Run, error)) (*body[engine.Run], error) {
	if !wellFormedID(id) {
		return nil, httpx.NotFound("run", id)
	}
	user := a.identity(ctx).User
	run, err := do(ctx, id, user.Name)
	if err != nil {
		return nil, notFoundAs(err, "run", id)
	}
	a.audit.Record(ctx, user.UserID, action, id, run.RunName)
	return &body[engine.Run]{a.hideRun(run)}, nil
}

type warehouseInput struct {
	IDInput
	From      float64 `query:"from_seconds" minimum:"0" maximum:"1000000000" doc:"Only polls and slots from this elapsed second on."`
	Until     float64 `query:"until_seconds" minimum:"0" maximum:"1000000000" doc:"Only polls and slots up to this elapsed second; 0 means all."`
	MaxPoints int     `query:"max_points" minimum:"10" maximum:"10000" default:"2000" doc:"How many polls, and how many slots, to answer about. Of more, each poll is the last of several, with the most queries that ran and waited in any of them; slots are left out evenly."`
}

// WarehouseSeries is what the poller saw of a run's warehouse, oldest first.
type WarehouseSeries struct {
	ResolutionSeconds float64                 `json:"resolution_seconds" doc:"How many seconds a poll stands for: 5, or a multiple of it."`
	Points            []engine.WarehousePoint `json:"points"`
	// Slots are the run in even steps of five seconds or more, with gaps where nothing was polled.
	Slots []engine.WarehouseSlot `json:"slots"`
}

func (a *API) warehouse(ctx context.Context, in *warehouseInput) (*body[WarehouseSeries], error) {
	if err := a.exists(ctx, in.ID); err != nil {
		return nil, err
	}
	window := store.Window{From: in.From, Until: in.Until, MaxPoints: in.MaxPoints}
	points, resolution, err := a.Store.WarehousePolls(ctx, in.ID, window)
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	slots := []engine.WarehouseSlot{}
	if len(points) > 0 {
		if slots, err = a.Store.WarehouseSlots(ctx, in.ID, window); err != nil {
			return nil, notFoundAs(err, "run", in.ID)
		}
	}
	return &body[WarehouseSeries]{WarehouseSeries{resolution, orEmpty(points), orEmpty(slots)}}, nil
}

func (a *API) enrichment(ctx context.Context, in *IDInput) (*body[engine.Enrichment], error) {
	d, err := a.detail(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &body[engine.Enrichment]{d.Enrichment}, nil
}

func (a *API) retryEnrichment(ctx context.Context, in *IDInput) (*body[engine.Enrichment], error) {
	if err := a.mayUseRun(ctx, in.ID); err != nil {
		return nil, err
	}
	return a.changeEnrichment(ctx, in.ID, "run.enrichment.retry", a.Runs.RetryEnrichment)
}

func (a *API) stopEnrichment(ctx context.Context, in *IDInput) (*body[engine.Enrichment], error) {
	return a.changeEnrichment(ctx, in.ID, "run.enrichment.stop",
		func(ctx context.Context, id string, by engine.Actor) (engine.Enrichment, error) {
			return a.Runs.StopEnrichment(ctx, id, by.Name)
		})
}

func (a *API) changeEnrichment(ctx context.Context, id, action string,
	do func(context.Context, string, engine.Actor) (engine.Enrichment, error)) (*body[engine.Enrichment], error) {
	if !wellFormedID(id) {
		return nil, httpx.NotFound("run", id)
	}
	user := a.identity(ctx).User
	e, err := do(ctx, id, engine.Actor{ID: user.UserID, Name: user.Name})
	if err != nil {
		return nil, notFoundAs(err, "run", id)
	}
	a.audit.Record(ctx, user.UserID, action, id, "")
	return &body[engine.Enrichment]{e}, nil
}

func (a *API) deleteRun(ctx context.Context, in *IDInput) (*nothing, error) {
	if !wellFormedID(in.ID) {
		return nil, httpx.NotFound("run", in.ID)
	}
	// Figures of what somebody may not load are not that user's to take away either.
	if err := a.mayUseRun(ctx, in.ID); err != nil {
		return nil, err
	}
	user := a.identity(ctx).User
	if err := a.Runs.Delete(ctx, in.ID, user.Name); err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	a.audit.Record(ctx, user.UserID, "run.delete", in.ID, "")
	return &nothing{}, nil
}

func (a *API) series(ctx context.Context, in *seriesInput) (*body[Series], error) {
	if err := a.exists(ctx, in.ID); err != nil {
		return nil, err
	}
	var out Series
	var err error
	window := store.Window{From: in.From, Until: in.Until, MaxPoints: in.MaxPoints}
	switch in.WorkerID {
	case "":
		out.Points.Run, out.ResolutionSeconds, err = a.Store.Series(ctx, in.ID, window)
	case "*":
		window.MaxPoints = min(window.MaxPoints*workerPointsFactor, maxWorkerPoints)
		out.Points.Workers, out.ResolutionSeconds, err = a.Store.WorkerSeries(ctx, in.ID, "", window)
	default:
		out.Points.Workers, out.ResolutionSeconds, err = a.Store.WorkerSeries(ctx, in.ID, in.WorkerID, window)
	}
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	return &body[Series]{out}, nil
}

func (a *API) logs(ctx context.Context, in *logsInput) (*body[LogPage], error) {
	if err := a.exists(ctx, in.ID); err != nil {
		return nil, err
	}
	lines, err := a.Store.Logs(ctx, in.ID, in.After, engine.LogLevel(in.Level), in.Limit)
	if err != nil {
		return nil, notFoundAs(err, "run", in.ID)
	}
	page := LogPage{Logs: orEmpty(lines), LastSeq: in.After}
	for _, l := range lines {
		page.LastSeq = max(page.LastSeq, l.Seq)
	}
	return &body[LogPage]{page}, nil
}

func (a *API) summary(ctx context.Context, in *IDInput) (*body[engine.Summary], error) {
	d, err := a.detail(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if d.Summary == nil {
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "The run has no figures yet.",
			Hint: "They are computed when the run has ended; GET /api/runs/{id} shows how far it is."}
	}
	return &body[engine.Summary]{*d.Summary}, nil
}
