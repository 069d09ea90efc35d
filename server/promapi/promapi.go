// Package promapi serves the HTTP API of Prometheus over the telemetry of runs, under /prometheus: Grafana's data
// source of that name and promtool work with it. Errors have Prometheus' form.
package promapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/loadstone-db/loadstone/engine"
	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// Prefix is under which the API is found: the address of a data source is the server's with this behind it.
const Prefix = httpx.Prometheus

// Telemetry is what is asked.
type Telemetry interface {
	// Instant and Range prepare a query; their errors are about its text.
	Instant(ctx context.Context, text string, at time.Time) (*analyticspromql.Query, error)
	Range(ctx context.Context, text string, start, end time.Time, step time.Duration) (*analyticspromql.Query, error)
	// Series are the labels of up to most series that any of the selectors selects between two times.
	Series(ctx context.Context, selectors [][]*labels.Matcher, from, to time.Time, most int) ([]labels.Labels, error)
	Parser() parser.Parser
}

// The limits of a request.
const (
	maxSteps      = 11_000
	maxSeries     = 20_000
	maxQueryBytes = 64 << 10
	// maxPoints is how many an answer has.
	maxPoints = 2_000_000
	// maxQueued is how many queries of a user wait for those that are evaluated, and maxWait how long.
	maxQueued = 256
	maxWait   = 5 * time.Minute
)

type handlers struct {
	telemetry Telemetry
	version   string
	streams   httpx.Downloads
	limiter   *queryLimiter
}

// Register adds the routes to an app whose middleware knows who is asking.
func Register(app fiber.Router, t Telemetry, version string, streams httpx.Downloads) {
	h := handlers{t, version, streams, newQueryLimiter(max(4, 2*runtime.GOMAXPROCS(0)), maxQueued)}
	for _, method := range []string{fiber.MethodGet, fiber.MethodPost} {
		for path, handle := range map[string]func(*fiber.Ctx) error{
			"/query": h.instant, "/query_range": h.ranged, "/query_events": h.events, "/series": h.series, "/labels": h.names,
			"/format_query": h.format, "/parse_query": h.parse, "/query_exemplars": h.emptyResult("/query_exemplars")} {
			app.Add(method, Prefix+"/api/v1"+path, handle)
		}
	}
	app.Get(Prefix+"/api/v1/label/:name/values", h.values)
	app.Get(Prefix+"/api/v1/metadata", h.metadata)
	app.Get(Prefix+"/api/v1/status/buildinfo", h.buildInfo)
	for _, path := range []string{"/rules", "/alerts"} {
		app.Get(Prefix+"/api/v1"+path, h.emptyResult(path))
	}
}

// failure is an error in Prometheus' form.
type failure struct {
	kind string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func badRequest(field string, format string, args ...any) error {
	return &failure{"bad_data", fmt.Errorf("invalid parameter %q: "+format, append([]any{field}, args...)...)}
}

type answer struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
}

func respond(c *fiber.Ctx, data any, notes annotations.Annotations) error {
	a := answer{Status: "success", Data: data}
	a.Warnings, a.Infos = notes.AsStrings("", 10, 10)
	slices.Sort(a.Warnings)
	slices.Sort(a.Infos)
	return c.JSON(a)
}

// respondError answers an error; its status is Prometheus' for the kind.
func respondError(c *fiber.Ctx, err error) error {
	kind := kindOf(err)
	status := http.StatusUnprocessableEntity
	switch kind {
	case "bad_data":
		status = http.StatusBadRequest
	case "canceled":
		status = 499
	case "timeout", "unavailable":
		status = http.StatusServiceUnavailable
	}
	c.Status(status)
	return c.JSON(answer{Status: "error", ErrorType: kind, Error: err.Error()})
}

func kindOf(err error) string {
	var f *failure
	var (
		canceled promql.ErrQueryCanceled
		timeout  promql.ErrQueryTimeout
		known    *engine.Error
	)
	switch {
	case errors.As(err, &f):
		return f.kind
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &known):
		return "unavailable"
	}
	return "execution"
}

// formValue is a parameter of the address or of a form.
func formValue(c *fiber.Ctx, name string) string {
	if v := c.Query(name); v != "" {
		return v
	}
	return c.FormValue(name)
}

func formValues(c *fiber.Ctx, name string) (all []string) {
	for _, v := range c.Context().QueryArgs().PeekMulti(name) {
		all = append(all, string(v))
	}
	for _, v := range c.Context().PostArgs().PeekMulti(name) {
		all = append(all, string(v))
	}
	return all
}

// instantOf reads a time: seconds since the epoch of Unix, or RFC 3339.
func instantOf(c *fiber.Ctx, name string, otherwise time.Time) (time.Time, error) {
	text := formValue(c, name)
	if text == "" {
		if otherwise.IsZero() {
			return otherwise, badRequest(name, "it is missing")
		}
		return otherwise, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/1e9 {
			return otherwise, badRequest(name, "%q is beyond the times that there are", text)
		}
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(part*1000))*int64(time.Millisecond)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return otherwise, badRequest(name, "cannot parse %q to a valid timestamp", text)
	}
	return t, nil
}

// durationOf reads a duration: seconds, or as in 5m.
func durationOf(c *fiber.Ctx, name string) (time.Duration, error) {
	text := formValue(c, name)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if ns := seconds * 1e9; !math.IsNaN(ns) && math.Abs(ns) < math.MaxInt64 {
			return time.Duration(ns), nil
		}
		return 0, badRequest(name, "%q is beyond the durations that there are", text)
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, badRequest(name, "cannot parse %q to a valid duration", text)
	}
	return time.Duration(d), nil
}

// queryText reads the expression.
func queryText(c *fiber.Ctx) (string, error) {
	q := formValue(c, "query")
	if len(q) > maxQueryBytes {
		return "", badRequest("query", "%d bytes are more than the %d that an expression may have", len(q), maxQueryBytes)
	}
	return q, nil
}

// queryContext is the context of a query: it ends with the request's own timeout, where it has one, and with the
// client.
func queryContext(
	c *fiber.Ctx,
	ctx context.Context, //nolint:revive // as c's methods
) (context.Context, func(), error) {
	if formValue(c, "timeout") == "" {
		ctx, stop := httpx.WatchDisconnect(ctx, c.Context().Conn())
		return ctx, stop, nil
	}
	d, err := durationOf(c, "timeout")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	ctx, stop := httpx.WatchDisconnect(ctx, c.Context().Conn())
	return ctx, func() { stop(); cancel() }, nil
}

// queryBuilder makes a query of what was asked for.
type queryBuilder func(context.Context) (*analyticspromql.Query, error)

func (h handlers) instant(c *fiber.Ctx) error {
	prepare, err := h.atInstant(c)
	if err != nil {
		return respondError(c, err)
	}
	return h.evaluate(c, prepare)
}

func (h handlers) ranged(c *fiber.Ctx) error {
	prepare, err := h.overRange(c)
	if err != nil {
		return respondError(c, err)
	}
	return h.evaluate(c, prepare)
}

func (h handlers) atInstant(c *fiber.Ctx) (queryBuilder, error) {
	at, err := instantOf(c, "time", time.Now())
	if err != nil {
		return nil, err
	}
	q, err := queryText(c)
	return func(ctx context.Context) (*analyticspromql.Query, error) { return h.telemetry.Instant(ctx, q, at) }, err
}

func (h handlers) overRange(c *fiber.Ctx) (queryBuilder, error) {
	start, err := instantOf(c, "start", time.Time{})
	if err != nil {
		return nil, err
	}
	end, err := instantOf(c, "end", time.Time{})
	if err != nil {
		return nil, err
	}
	step, err := durationOf(c, "step")
	switch {
	case err != nil:
		return nil, err
	case end.Before(start):
		return nil, badRequest("end", "end timestamp must not be before start time")
	case step < time.Millisecond:
		return nil, badRequest(
			"step",
			"zero or negative query resolution step widths are not accepted. Try a positive integer",
		)
	case end.Sub(start)/step > maxSteps:
		return nil, &failure{"bad_data", fmt.Errorf("exceeded maximum resolution of %d points per timeseries. "+
			"Try decreasing the query resolution (?step=XX)", maxSteps)}
	}
	q, err := queryText(c)
	return func(ctx context.Context) (*analyticspromql.Query, error) {
		return h.telemetry.Range(ctx, q, start, end, step)
	}, err
}

func (h handlers) evaluate(c *fiber.Ctx, prepare queryBuilder) error {
	ctx, stop, err := queryContext(c, c.UserContext())
	if err != nil {
		return respondError(c, err)
	}
	defer stop()
	leave, err := h.limiter.acquire(ctx)
	if err != nil {
		return respondError(c, err)
	}
	defer leave()
	begin := time.Now()
	query, err := prepare(ctx)
	if err != nil {
		return respondError(c, badRequest("query", "%w", err))
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return respondError(c, result.Err)
	}
	data, err := dataOf(result.Value)
	if err != nil {
		return respondError(c, err)
	}
	if formValue(c, "stats") != "" {
		data.Stats = statsOf(query, time.Since(begin))
	}
	return respond(c, data, result.Warnings)
}

// selectors reads match[].
func (h handlers) selectors(c *fiber.Ctx, wanted bool) ([][]*labels.Matcher, error) {
	texts := formValues(c, "match[]")
	if len(texts) == 0 && wanted {
		return nil, &failure{"bad_data", errors.New("no match[] parameter provided")}
	}
	for _, text := range texts {
		if len(text) > maxQueryBytes {
			return nil, badRequest("match[]", "%d bytes are more than the %d that a selector may have", len(text), maxQueryBytes)
		}
	}
	all, err := h.telemetry.Parser().ParseMetricSelectors(texts)
	if err != nil {
		return nil, badRequest("match[]", "%w", err)
	}
	return all, nil
}

func (h handlers) findSeries(c *fiber.Ctx, wanted bool) ([]labels.Labels, error) {
	from, err := instantOf(c, "start", time.Unix(0, 0))
	if err != nil {
		return nil, err
	}
	to, err := instantOf(c, "end", time.Now())
	if err != nil {
		return nil, err
	}
	selectors, err := h.selectors(c, wanted)
	if err != nil {
		return nil, err
	}
	found, err := h.telemetry.Series(c.UserContext(), selectors, from, to, maxSeries)
	if errors.Is(err, analyticspromql.ErrTooManySeries) {
		err = &failure{"execution", fmt.Errorf("more series match than the %d that are looked through; name a run, or "+
			"a shorter time", maxSeries)}
	}
	return found, err
}

func (h handlers) series(c *fiber.Ctx) error {
	found, err := h.findSeries(c, true)
	if err != nil {
		return respondError(c, err)
	}
	all := make([]map[string]string, len(found))
	for i, l := range found {
		all[i] = l.Map()
	}
	return respond(c, limited(c, all), nil)
}

func limited[T any](c *fiber.Ctx, all []T) []T {
	if n, err := strconv.Atoi(formValue(c, "limit")); err == nil && n > 0 && n < len(all) {
		return all[:n]
	}
	return all
}

func (h handlers) names(c *fiber.Ctx) error {
	return h.distinct(c, func(l labels.Labels, add func(string)) { l.Range(func(l labels.Label) { add(l.Name) }) })
}

func (h handlers) values(c *fiber.Ctx) error {
	name, err := url.PathUnescape(c.Params("name"))
	if err != nil || !model.UTF8Validation.IsValidLabelName(name) {
		return respondError(c, &failure{"bad_data", fmt.Errorf("invalid label name: %q", name)})
	}
	return h.distinct(c, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	})
}

func (h handlers) distinct(c *fiber.Ctx, of func(labels.Labels, func(string))) error {
	found, err := h.findSeries(c, false)
	if err != nil {
		return respondError(c, err)
	}
	known := map[string]bool{}
	all := []string{}
	for _, l := range found {
		of(l, func(s string) {
			if !known[s] {
				known[s], all = true, append(all, s)
			}
		})
	}
	slices.Sort(all)
	return respond(c, limited(c, all), nil)
}

func (h handlers) format(c *fiber.Ctx) error {
	expr, err := h.expression(c)
	if err != nil {
		return respondError(c, err)
	}
	return respond(c, expr.Pretty(0), nil)
}

func (h handlers) metadata(c *fiber.Ctx) error {
	type entry struct {
		Type string `json:"type"`
		Help string `json:"help"`
		Unit string `json:"unit"`
	}
	all := map[string][]entry{}
	only := formValue(c, "metric")
	for _, m := range metric.All {
		if only == "" || only == m.Name {
			all[m.Name] = []entry{{m.Type, m.Help, m.Unit}}
		}
	}
	return respond(c, all, nil)
}

func (h handlers) buildInfo(c *fiber.Ctx) error {
	return respond(c, map[string]string{"version": "3.0.0", "revision": h.version, "branch": "loadstone",
		"buildUser": "", "buildDate": "", "goVersion": ""}, nil)
}

func (handlers) emptyResult(path string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		switch path {
		case "/rules":
			return respond(c, map[string][]string{"groups": {}}, nil)
		case "/alerts":
			return respond(c, map[string][]string{"alerts": {}}, nil)
		}
		return respond(c, []string{}, nil)
	}
}

func (h handlers) parse(c *fiber.Ctx) error {
	expr, err := h.expression(c)
	if err != nil {
		return respondError(c, err)
	}
	return respond(c, syntaxTree(expr), nil)
}

// expression reads one that is only looked at.
func (h handlers) expression(c *fiber.Ctx) (parser.Expr, error) {
	q, err := queryText(c)
	if err != nil {
		return nil, err
	}
	expr, err := analyticspromql.Parse(h.telemetry.Parser(), q)
	if err != nil {
		return nil, badRequest("query", "%w", err)
	}
	return expr, nil
}
