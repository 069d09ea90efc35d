package promapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/server/promapi"
)

// catalog has the segments of runs in memory; err is what it answers, where it is not nil.
type catalog struct {
	promqltest.Catalog
	err error
}

func (c catalog) Segments(ctx context.Context, from, to int64) ([]promql.Segment, error) {
	all, _ := c.Catalog.Segments(ctx, from, to)
	return all, c.err
}

// twoRuns are made once.
var twoRuns = sync.OnceValues(func() ([]promqltest.Run, error) { return promqltest.Runs(2) })

func app(t *testing.T, change func(*catalog, *promql.EngineOptions)) *fiber.App {
	t.Helper()
	runs, err := twoRuns()
	if err != nil {
		t.Fatal(err)
	}
	c, o := catalog{Catalog: runs}, promql.DefaultOptions()
	if change != nil {
		change(&c, &o)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true, BodyLimit: 4 << 20, ReadBufferSize: 1 << 20})
	promapi.Register(app, local(c, promql.NewEvaluator(c.Read, o, 64<<20), o), "1.2.3",
		httpx.Downloads{Life: t.Context()})
	return app
}

// local answers without nodes.
func local(c promql.Catalog, n *promql.Evaluator, o promql.EngineOptions) *promql.Telemetry {
	return promql.NewTelemetry(c, promqltest.Local{Catalog: c, Evaluator: n}, n, o)
}

// ask calls an address with parameters, in the address and in a form, and holds that both are answered the same.
func ask(t *testing.T, app *fiber.App, path string, q url.Values) (status int, body string) {
	t.Helper()
	if len(q.Encode()) > 1<<18 { // no address is as long
		post := httptest.NewRequest(http.MethodPost, promapi.Prefix+"/api/v1"+path, strings.NewReader(q.Encode()))
		post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return do(t, app, post)
	}
	get := httptest.NewRequest(http.MethodGet, promapi.Prefix+"/api/v1"+path+"?"+q.Encode(), nil)
	status, body = do(t, app, get)
	switch path {
	case "/query", "/query_range", "/series", "/labels", "/format_query", "/parse_query":
		post := httptest.NewRequest(http.MethodPost, promapi.Prefix+"/api/v1"+path, strings.NewReader(q.Encode()))
		post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if code, text := do(t, app, post); code != status || text != body && code < 499 && q.Get("stats") == "" {
			t.Errorf("%s by POST: %d %s, by GET %d %s", path, code, short(text), status, short(body))
		}
	}
	return status, body
}

func do(t *testing.T, app *fiber.App, r *http.Request) (int, string) {
	t.Helper()
	res, err := app.Test(r, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func short(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}

func of(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	return q
}

// TestAnswersHavePrometheusForm compares with what Prometheus answers, to the byte.
func TestAnswersHavePrometheusForm(t *testing.T) {
	app := app(t, nil)
	for _, c := range []struct {
		path string
		q    url.Values
		want string
	}{
		{"/query", of("query", "1+1", "time", "1795348830.5"), `{"resultType":"scalar","result":[1795348830.5,"2"]}`},
		{"/query", of("query", `"a\nb"`, "time", "7"), `{"resultType":"string","result":[7,"a\nb"]}`},
		{"/query", of("query", "vector(-Inf)", "time", "2026-11-22T12:00:00Z"),
			`{"resultType":"vector","result":[{"metric":{},"value":[1795348800,"-Inf"]}]}`},
		{"/query", of("query", "vector(NaN) or absent(nothing)", "time", "7"),
			`{"resultType":"vector","result":[{"metric":{},"value":[7,"NaN"]}]}`},
		{"/query", of("query", "nothing", "time", "7"), `{"resultType":"vector","result":[]}`},
		{"/query", of("query", `count by (run) (loadstone_operations_total{run="r-1"})`, "time", "1795348830"),
			`{"resultType":"vector","result":[{"metric":{"run":"r-1"},"value":[1795348830,"6"]}]}`},
		{"/query", of("query", `loadstone_warehouse_queued_queries{run="r-0"}[6s]`, "time", "1795348812"),
			`{"resultType":"matrix","result":[{"metric":{"__name__":"loadstone_warehouse_queued_queries","run":"r-0",` +
				`"run_name":"\"nä\nme\" r-0","template":"t-0","warehouse":"W"},"values":[[1795348810,"0"]]}]}`},
		{"/query_range", of("query", `sum(loadstone_operations_total{run="r-0"})`, "start", "1795348801", "end",
			"1795348803", "step", "1s"), `{"resultType":"matrix","result":[{"metric":{},` +
			`"values":[[1795348801,"50"],[1795348802,"100"],[1795348803,"150"]]}]}`},
		{"/query_range", of("query", "vector(1e21)", "start", "1", "end", "1", "step", "0.5"),
			`{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1e+21"]]}]}`},
		{"/label/kind/values", nil, `["INSERT","POINT_LOOKUP","UPDATE"]`},
		{"/label/kind/values", of("match[]", `loadstone_errors_total{run="nobody"}`), `[]`},
		{"/label/run/values", of("limit", "1"), `["r-0"]`},
		{"/labels", of("match[]", "loadstone_warehouse_running_queries"),
			`["__name__","run","run_name","template","warehouse"]`},
		{"/series", of("match[]", `loadstone_warehouse_running_queries{run="r-1"}`, "start", "0", "end", "1795349000"),
			`[{"__name__":"loadstone_warehouse_running_queries","run":"r-1","run_name":"\"nä\nme\" r-1",` +
				`"template":"t-1","warehouse":"W"}]`},
		{"/format_query", of("query", "foo/bar"), `"foo / bar"`},
		{"/parse_query", of("query", `-a{b="c"} offset 5m`), `{"type":"unaryExpr","op":"-","expr":{` +
			`"type":"vectorSelector","name":"a","offset":300000,"offsetExpr":null,"startOrEnd":null,"timestamp":null,` +
			`"anchored":false,"smoothed":false,"matchers":[{"name":"b","type":"=","value":"c"},` +
			`{"name":"__name__","type":"=","value":"a"}]}}`},
		{"/metadata", of("metric", "loadstone_rows_total"),
			`{"loadstone_rows_total":[{"type":"counter","help":"Rows that operations read or wrote.","unit":""}]}`},
		{"/query_exemplars", nil, `[]`},
		{"/rules", nil, `{"groups":[]}`},
	} {
		status, body := ask(t, app, c.path, c.q)
		var got, want any
		if err := errors.Join(json.Unmarshal([]byte(body), &got),
			json.Unmarshal([]byte(`{"status":"success","data":`+c.want+`}`), &want)); err != nil {
			t.Errorf("%s %v: %v", c.path, c.q, err)
		}
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		if status != http.StatusOK || string(g) != string(w) {
			t.Errorf("%s %v: %d\n%s, not\n%s", c.path, c.q, status, short(string(g)), w)
		}
	}
}

// TestHistogramsAndStats: a native histogram has its buckets with their bounds, and stats say how a query was divided.
func TestHistogramsAndStats(t *testing.T) {
	_, body := ask(t, app(t, nil), "/query", of("query", `sum(loadstone_latency_seconds{run="r-0"})`, "time", "1795348830",
		"stats", "all"))
	var a struct {
		Data struct {
			Result []struct {
				Histogram []any `json:"histogram"`
			} `json:"result"`
			Stats struct {
				QueryID string `json:"query_id"`
				Stages  promql.Stages
				Samples struct{ TotalQueryableSamples int }
				Leaves  []struct {
					Expr     string
					Instants int
					Pieces   []promql.WorkStats
				}
			} `json:"stats"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil || len(a.Data.Result) != 1 {
		t.Fatalf("%v: %s", err, short(body))
	}
	h, _ := a.Data.Result[0].Histogram[1].(map[string]any)
	buckets, _ := h["buckets"].([]any)
	if h["count"] != "1450" || len(buckets) < 100 {
		t.Errorf("the histogram is %s", short(body))
	}
	if s := a.Data.Stats; len(s.Leaves) != 1 || s.Leaves[0].Expr != `loadstone_latency_seconds{run="r-0"}` ||
		s.QueryID == "" || s.Stages.LeavesMs <= 0 || s.Leaves[0].Instants != 1 ||
		len(s.Leaves[0].Pieces) != 1 || s.Leaves[0].Pieces[0].Segments != 1 || s.Samples.TotalQueryableSamples < 3 {
		t.Errorf("the stats are %+v", s)
	}
}

// TestWhatIsRefused: each with Prometheus' status and kind, and a sentence that names what is wrong.
func TestWhatIsRefused(t *testing.T) {
	app := app(t, func(_ *catalog, o *promql.EngineOptions) { o.MaxSamples = 5000 })
	ranged := func(pairs ...string) url.Values {
		q := of("query", "1", "start", "0", "end", "60", "step", "1")
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return q
	}
	for _, c := range []struct {
		path   string
		q      url.Values
		status int
		kind   string
		says   string
	}{
		{"/query", of("query", "sum("), 400, "bad_data", "parse error"},
		{"/query", of("query", ""), 400, "bad_data", "no expression found"},
		{"/query", of("query", "a", "time", "yesterday"), 400, "bad_data", `cannot parse "yesterday"`},
		{"/query", of("query", "a", "time", "NaN"), 400, "bad_data", "beyond the times"},
		{"/query", of("query", "a", "time", "1e300"), 400, "bad_data", "beyond the times"},
		{"/query", of("query", "a", "timeout", "soon"), 400, "bad_data", "valid duration"},
		{"/query", of("query", "info(a)"), 400, "bad_data", "info"},
		{"/query", of("query", strings.Repeat("a+", 1<<19)+"a"), 400, "bad_data", "65536"},
		{"/query", of("query", strings.Repeat("(", 10_000)+"1"+strings.Repeat(")", 10_000)), 400, "bad_data", "1000 levels"},
		{"/query", of("query", strings.Repeat("-", 10_000)+"a"), 400, "bad_data", "1000 levels"},
		{"/query", of("query", strings.Repeat("1^", 10_000)+"1"), 400, "bad_data", "1000 levels"},
		{"/query", of("query", `a{b=~"`+"((a{1000}){1000})"+`"}`), 400, "bad_data", "regexp"},
		{"/query", of("query", `{__name__=~".*"}`), 400, "bad_data", "non-empty matcher"},
		{"/query_range", ranged("query", `{__name__=~".+"}`, "start", "1795348800", "end", "1795348900"), 422,
			"execution", "too many samples"},
		{"/query", of("query", `a + on() b`, "time", "nan"), 400, "bad_data", "beyond the times"},
		{"/query_range", ranged("end", "-1"), 400, "bad_data", "before start"},
		{"/query_range", ranged("step", "0"), 400, "bad_data", "zero or negative"},
		{"/query_range", ranged("step", "-5s"), 400, "bad_data", "valid duration"},
		{"/query_range", ranged("step", "NaN"), 400, "bad_data", "beyond the durations"},
		{"/query_range", ranged("step", "Inf"), 400, "bad_data", "beyond the durations"},
		{"/query_range", ranged("end", "1000000000"), 400, "bad_data", "11000"},
		{"/query_range", ranged("start", "-9e9", "end", "9e9"), 400, "bad_data", "11000"},
		{"/query_range", ranged("query", `"text"`), 400, "bad_data", "invalid expression type"},
		{"/query_range", ranged("query", "a[5m]"), 400, "bad_data", "invalid expression type"},
		{"/query_range", of("query", "1"), 400, "bad_data", "missing"},
		{"/query", of("query", "max_over_time(vector(1)[31y:1s])"), 400, "bad_data", "may have 100000"},
		{"/query", of("query", "absent_over_time(rate(loadstone_operations_total[1m])[100y:1ms])"), 400, "bad_data",
			"may have 100000"},
		{"/query_range", ranged("query", "sum_over_time(sum_over_time(vector(1)[1d:1s])[1d:1s] @ end())"), 400, "bad_data",
			"may have 100000"},
		{"/query", of("query", "rate(a[Inf])"), 400, "bad_data", "parse error"},
		{"/query", of("query", "a @ NaN"), 400, "bad_data", "out of bounds"},
		{"/query", of("query", "a", "timeout", "NaN"), 400, "bad_data", "beyond the durations"},
		{"/query", of("query", "sum("+strings.Repeat("a or ", 2000)+"a)"), 400, "bad_data", "1000 operators"},
		{"/series", of("match[]", `a{b=~"((a{1000}){1000})"}`), 400, "bad_data", "regexp"},
		{"/series", nil, 400, "bad_data", "match[]"},
		{"/series", of("match[]", "a b"), 400, "bad_data", "parse error"},
		{"/label/%FF/values", nil, 400, "bad_data", "label name"},
		{"/format_query", of("query", "sum("), 400, "bad_data", "parse error"},
		{"/parse_query", of("query", "sum("), 400, "bad_data", "parse error"},
	} {
		status, body := ask(t, app, c.path, c.q)
		var a struct{ Status, ErrorType, Error string }
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != c.status || a.Status != "error" ||
			a.ErrorType != c.kind || !strings.Contains(a.Error, c.says) || len(a.Error) > 2000 {
			t.Errorf("%s %s: %d %s (%v)", c.path, short(c.q.Encode()), status, short(body), err)
		}
	}
}

// TestASourceThatFails: what the catalog says is answered as unavailable, a timeout as one.
func TestASourceThatFails(t *testing.T) {
	away := app(t, func(c *catalog, _ *promql.EngineOptions) {
		c.err = &engine.Error{Code: engine.CodeUnavailable, Message: "The results database is away."}
	})
	for _, path := range []string{"/query", "/series", "/labels"} {
		if status, body := ask(t, away, path, of("query", "a", "match[]", "a")); status != 503 ||
			!strings.Contains(body, "unavailable") || !strings.Contains(body, "away") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	status, body := ask(t, app(t, nil), "/query", of("query", "sum(loadstone_operations_total)", "timeout", "1e-9"))
	if status != 503 || !strings.Contains(body, `"timeout"`) {
		t.Errorf("%d %s", status, body)
	}
}

// TestManyStrangeValues: 10 000 values of a label with quotes, line breaks and Unicode are listed, selected one by one
// and by an expression of 20 KB, and come back as they were.
func TestManyStrangeValues(t *testing.T) {
	const n = 10_000
	value := func(i int) string { return fmt.Sprintf("%d \"ä\n\\ 漢😀\u202e'{}`", i) }
	noon := promqltest.Noon
	r := &rollup.Run{Run: engine.Run{RunID: "many", StartTime: engine.At(noon)}, Seconds: rollup.New(noon)}
	for i := range n {
		rollup.CellFor(r.Seconds.Workers, rollup.WorkerKey{Worker: value(i)}).Operations = int64(i)
	}
	content, _, err := segment.Bytes(r)
	if err != nil {
		t.Fatal(err)
	}
	app := app(t, func(c *catalog, _ *promql.EngineOptions) {
		c.Catalog = promqltest.Catalog{{Content: content, Segment: promql.Segment{RunID: "many", Name: "many",
			From: noon.UnixMilli(), To: noon.Add(time.Minute).UnixMilli(), Labels: labels.FromStrings("run", "many")}}}
	})
	at := fmt.Sprint(noon.Add(time.Second).Unix())
	var listed struct{ Data []string }
	_, body := ask(t, app, "/label/worker/values", of("match[]", "loadstone_worker_operations_total", "start", at,
		"end", at))
	if err := json.Unmarshal([]byte(body), &listed); err != nil || len(listed.Data) != n ||
		!slices.Contains(listed.Data, value(7777)) {
		t.Errorf("%d values, %v: %s", len(listed.Data), err, short(body))
	}
	some := regexp.QuoteMeta(value(7777))
	for i := 0; len(some) < 20<<10; i++ {
		some += "|" + regexp.QuoteMeta(value(i))
	}
	for _, matcher := range []string{fmt.Sprintf("worker=%q", value(7777)),
		fmt.Sprintf("worker=~%q,worker=%q", some, value(7777))} {
		status, body := ask(t, app, "/query", of("query", "loadstone_worker_operations_total{"+matcher+"}", "time", at))
		if status != http.StatusOK || strings.Count(body, `"value":`) != 1 || !strings.Contains(body, `"7777"]`) {
			t.Errorf("%s: %d %s", short(matcher), status, short(body))
		}
	}
}
