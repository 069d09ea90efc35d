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
	Instant(ctx context.Context, text string, at time.Time) (*analyticspromql.PromQLQuery, error)
	Range(ctx context.Context, text string, start, end time.Time, step time.Duration) (*analyticspromql.PromQLQuery, error)
	// Series are the labels of up to most series that any of the selectors selects between two times.
	Series(ctx context.Context, selectors [][]*labels.Matcher, from, to time.Time, most int) ([]labels.Labels, error)
	Parser() parser.Parser
}

// The limits of a request.
const (
	mostSteps  = 11_000
	mostSeries = 20_000
	mostText   = 64 << 10
	// mostPoints is how many an answer has.
	mostPoints = 2_000_000
	// mostWaiting is how many queries wait for those that are evaluated.
	mostWaiting = 256
)

type handlers struct {
	t       Telemetry
	version string
	streams httpx.Downloads
	crowd   *crowd
}

// Register adds the routes to an app whose middleware knows who is asking.
func Register(app fiber.Router, t Telemetry, version string, streams httpx.Downloads) {
	h := handlers{t, version, streams, newCrowd(max(4, 2*runtime.GOMAXPROCS(0)), mostWaiting)}
	for _, method := range []string{fiber.MethodGet, fiber.MethodPost} {
		for path, handle := range map[string]func(*fiber.Ctx) error{
			"/query": h.instant, "/query_range": h.ranged, "/query_events": h.events, "/series": h.series, "/labels": h.names,
			"/format_query": h.format, "/parse_query": h.parse, "/query_exemplars": h.nothing("/query_exemplars")} {
			app.Add(method, Prefix+"/api/v1"+path, handle)
		}
	}
	app.Get(Prefix+"/api/v1/label/:name/values", h.values)
	app.Get(Prefix+"/api/v1/metadata", h.metadata)
	app.Get(Prefix+"/api/v1/status/buildinfo", h.buildInfo)
	for _, path := range []string{"/rules", "/alerts"} {
		app.Get(Prefix+"/api/v1"+path, h.nothing(path))
	}
}

// failure is an error in Prometheus' form.
type failure struct {
	kind string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func bad(field string, format string, args ...any) error {
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

// refuse answers an error; its status is Prometheus' for the kind.
func refuse(c *fiber.Ctx, err error) error {
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

// field is a parameter of the address or of a form.
func field(c *fiber.Ctx, name string) string {
	if v := c.Query(name); v != "" {
		return v
	}
	return c.FormValue(name)
}

func fields(c *fiber.Ctx, name string) (all []string) {
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
	text := field(c, name)
	if text == "" {
		if otherwise.IsZero() {
			return otherwise, bad(name, "it is missing")
		}
		return otherwise, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/1e9 {
			return otherwise, bad(name, "%q is beyond the times that there are", text)
		}
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(part*1000))*int64(time.Millisecond)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return otherwise, bad(name, "cannot parse %q to a valid timestamp", text)
	}
	return t, nil
}

// durationOf reads a duration: seconds, or as in 5m.
func durationOf(c *fiber.Ctx, name string) (time.Duration, error) {
	text := field(c, name)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if ns := seconds * 1e9; !math.IsNaN(ns) && math.Abs(ns) < math.MaxInt64 {
			return time.Duration(ns), nil
		}
		return 0, bad(name, "%q is beyond the durations that there are", text)
	}
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, bad(name, "cannot parse %q to a valid duration", text)
	}
	return time.Duration(d), nil
}

// text reads the expression.
func text(c *fiber.Ctx) (string, error) {
	q := field(c, "query")
	if len(q) > mostText {
		return "", bad("query", "%d bytes are more than the %d that an expression may have", len(q), mostText)
	}
	return q, nil
}

// within is the context of a query: it ends with the request's own timeout, where it has one, and with the client.
func within(c *fiber.Ctx, ctx context.Context) (context.Context, func(), error) { //nolint:revive // as c's methods
	if field(c, "timeout") == "" {
		ctx, stop := httpx.Watch(ctx, c.Context().Conn())
		return ctx, stop, nil
	}
	d, err := durationOf(c, "timeout")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	ctx, stop := httpx.Watch(ctx, c.Context().Conn())
	return ctx, func() { stop(); cancel() }, nil
}

// prepared makes a query of what was asked for.
type prepared func(context.Context) (*analyticspromql.PromQLQuery, error)

func (h handlers) instant(c *fiber.Ctx) error {
	prepare, err := h.atInstant(c)
	if err != nil {
		return refuse(c, err)
	}
	return h.ask(c, prepare)
}

func (h handlers) ranged(c *fiber.Ctx) error {
	prepare, err := h.overRange(c)
	if err != nil {
		return refuse(c, err)
	}
	return h.ask(c, prepare)
}

func (h handlers) atInstant(c *fiber.Ctx) (prepared, error) {
	at, err := instantOf(c, "time", time.Now())
	if err != nil {
		return nil, err
	}
	q, err := text(c)
	return func(ctx context.Context) (*analyticspromql.PromQLQuery, error) { return h.t.Instant(ctx, q, at) }, err
}

func (h handlers) overRange(c *fiber.Ctx) (prepared, error) {
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
		return nil, bad("end", "end timestamp must not be before start time")
	case step < time.Millisecond:
		return nil, bad("step", "zero or negative query resolution step widths are not accepted. Try a positive integer")
	case end.Sub(start)/step > mostSteps:
		return nil, &failure{"bad_data", fmt.Errorf("exceeded maximum resolution of %d points per timeseries. "+
			"Try decreasing the query resolution (?step=XX)", mostSteps)}
	}
	q, err := text(c)
	return func(ctx context.Context) (*analyticspromql.PromQLQuery, error) {
		return h.t.Range(ctx, q, start, end, step)
	}, err
}

func (h handlers) ask(c *fiber.Ctx, prepare prepared) error {
	ctx, stop, err := within(c, c.UserContext())
	if err != nil {
		return refuse(c, err)
	}
	defer stop()
	leave, err := h.crowd.enter(ctx)
	if err != nil {
		return refuse(c, err)
	}
	defer leave()
	begin := time.Now()
	query, err := prepare(ctx)
	if err != nil {
		return refuse(c, bad("query", "%w", err))
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return refuse(c, result.Err)
	}
	data, err := dataOf(result.Value)
	if err != nil {
		return refuse(c, err)
	}
	if field(c, "stats") != "" {
		data.Stats = statsOf(query, time.Since(begin))
	}
	return respond(c, data, result.Warnings)
}

// selectors reads match[].
func (h handlers) selectors(c *fiber.Ctx, wanted bool) ([][]*labels.Matcher, error) {
	texts := fields(c, "match[]")
	if len(texts) == 0 && wanted {
		return nil, &failure{"bad_data", errors.New("no match[] parameter provided")}
	}
	for _, text := range texts {
		if len(text) > mostText {
			return nil, bad("match[]", "%d bytes are more than the %d that a selector may have", len(text), mostText)
		}
	}
	all, err := h.t.Parser().ParseMetricSelectors(texts)
	if err != nil {
		return nil, bad("match[]", "%w", err)
	}
	return all, nil
}

func (h handlers) find(c *fiber.Ctx, wanted bool) ([]labels.Labels, error) {
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
	found, err := h.t.Series(c.UserContext(), selectors, from, to, mostSeries)
	if errors.Is(err, analyticspromql.ErrTooManySeries) {
		err = &failure{"execution", fmt.Errorf("more series match than the %d that are looked through; name a run, or "+
			"a shorter time", mostSeries)}
	}
	return found, err
}

func (h handlers) series(c *fiber.Ctx) error {
	found, err := h.find(c, true)
	if err != nil {
		return refuse(c, err)
	}
	all := make([]map[string]string, len(found))
	for i, l := range found {
		all[i] = l.Map()
	}
	return respond(c, limited(c, all), nil)
}

func limited[T any](c *fiber.Ctx, all []T) []T {
	if n, err := strconv.Atoi(field(c, "limit")); err == nil && n > 0 && n < len(all) {
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
		return refuse(c, &failure{"bad_data", fmt.Errorf("invalid label name: %q", name)})
	}
	return h.distinct(c, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	})
}

func (h handlers) distinct(c *fiber.Ctx, of func(labels.Labels, func(string))) error {
	found, err := h.find(c, false)
	if err != nil {
		return refuse(c, err)
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
		return refuse(c, err)
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
	only := field(c, "metric")
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

func (handlers) nothing(path string) fiber.Handler {
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
		return refuse(c, err)
	}
	return respond(c, tree(expr), nil)
}

// expression reads one that is only looked at.
func (h handlers) expression(c *fiber.Ctx) (parser.Expr, error) {
	q, err := text(c)
	if err != nil {
		return nil, err
	}
	expr, err := analyticspromql.Parse(h.t.Parser(), q)
	if err != nil {
		return nil, bad("query", "%w", err)
	}
	return expr, nil
}
