package template

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

const small = `
name: small
target: {connection: playground, table_name: orders}
workload: {plugin: mix}
`

func TestDefaults(t *testing.T) {
	s, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if s.Target.Adapter != "postgres" || s.Workload.LoadMode != engine.LoadConcurrency ||
		s.Workload.ConcurrentConnections != 16 || s.Scaling.PerWorkerCapacity != 16 || s.Scaling.WorkerCount != 1 ||
		s.Workload.Seed != 1 || string(s.Workload.Params) != "{}" || s.Target.Prepare != nil {
		t.Errorf("defaults: %+v", s)
	}
	if s.Guardrails.MaxCPUPercent != nil {
		t.Error("a guardrail applies without being asked for")
	}
}

func TestExamplesAreValid(t *testing.T) {
	entries, err := os.ReadDir("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		source, err := os.ReadFile("../../../examples/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(source)
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
			continue
		}
		text, err := YAML(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Errorf("%s: what YAML wrote is refused: %v\n%s", e.Name(), err, text)
		}
		a, _ := json.Marshal(s)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Errorf("%s changed on its way through YAML:\n%s\n%s", e.Name(), a, b)
		}
	}
}

// TestRefusals names, for every wrong document, the field and a word of the cure.
func TestRefusals(t *testing.T) {
	base := func(section, field, value string) string {
		doc, err := replaced([]byte(small), section+"."+field, value)
		if err != nil {
			t.Fatalf("%s.%s=%s: %v", section, field, value, err)
		}
		return string(doc)
	}
	qps := func(field, value string) string {
		doc := small
		for _, set := range [][2]string{{"load_mode", "QPS"}, {"target_qps", "100"}, {field, value}} {
			next, err := replaced([]byte(doc), "workload."+set[0], set[1])
			if err != nil {
				t.Fatalf("workload.%s=%s: %v", set[0], set[1], err)
			}
			doc = string(next)
		}
		return doc
	}
	reconnect := func(field, value string) string {
		doc, err := replaced([]byte(base("workload", "on_disconnect", "reconnect")), "workload."+field, value)
		if err != nil {
			t.Fatalf("workload.%s=%s: %v", field, value, err)
		}
		return string(doc)
	}
	for _, tc := range []struct{ doc, field, words string }{
		{base("workload", "durations_seconds", "5"), "workload.durations_seconds", `did you mean "duration_seconds"`},
		{small + "worklaod: {}\n", "worklaod", `did you mean "workload"`},
		{base("workload", "concurrent_connections", "1000000000"), "workload.concurrent_connections", "20000"},
		{base("workload", "concurrent_connections", "-1"), "workload.concurrent_connections", "must be at least 1"},
		{base("workload", "concurrent_connections", "0"), "workload.concurrent_connections", "must be at least 1"},
		{base("workload", "concurrent_connections", "2.5"), "workload.concurrent_connections", "whole number"},
		{base("workload", "concurrent_connections", "many"), "workload.concurrent_connections", "whole number"},
		{base("workload", "duration_seconds", "9223372036854775808"), "workload.duration_seconds", "604800"},
		{base("workload", "duration_seconds", "1e300"), "workload.duration_seconds", "604800"},
		{base("workload", "duration_seconds", "0"), "workload.duration_seconds", "must be more than 0"},
		{base("workload", "duration_seconds", ".nan"), "workload.duration_seconds", "finite"},
		{base("workload", "duration_seconds", ".inf"), "workload.duration_seconds", "finite"},
		{base("workload", "warmup_seconds", "null"), "workload.warmup_seconds", "number"},
		{base("workload", "load_mode", "CONCURENCY"), "workload.load_mode", `did you mean "CONCURRENCY"`},
		{base("workload", "load_mode", "QPS"), "workload.target_qps", "required"},
		{base("workload", "arrival", "poisson"), "workload.arrival", "load_mode: QPS"},
		{base("workload", "stages", "[]"), "workload.stages", "at least 1"},
		{base("workload", "stages", "[{connections: 5}]"), "workload.stages[0].duration_seconds", "required"},
		{base("workload", "stages", "[{duration_seconds: 0, connections: 5}]"), "workload.stages[0].duration_seconds",
			"must be more than 0"},
		{base("workload", "stages", "[{duration_seconds: -5, connections: 5}]"), "workload.stages[0].duration_seconds",
			"must be more than 0"},
		{base("workload", "stages", "[{duration_seconds: .inf, connections: 5}]"), "workload.stages[0].duration_seconds",
			"finite"},
		{base("workload", "stages", "[{duration_seconds: 5, connections: 0}]"), "workload.stages[0].connections", "least"},
		{base("workload", "stages", "[{duration_seconds: 5, start_seconds: 0, connections: 3}]"),
			"workload.stages[0].start_seconds", "unknown"},
		{base("workload", "stages", "[{duration_seconds: 5}]"), "workload.stages[0].connections", "in a closed loop"},
		{base("workload", "stages", "[{duration_seconds: 5, target_qps: 5, connections: 4}]"), "workload.stages[0]", "both"},
		{base("workload", "stages", "[{duration_seconds: 604800, connections: 5}, {duration_seconds: 1, connections: 5}]"),
			"workload.stages", "a week"},
		{base("workload", "stages", "[{duration_seconds: 5, connections: 5, ramp: smooth}]"), "workload.stages[0].ramp",
			"one of linear, step"},
		{qps("target_qps", "0"), "workload.target_qps", "must be more than 0"},
		{qps("target_qps", "-5"), "workload.target_qps", "must be more than 0"},
		{qps("target_qps", "1e9"), "workload.target_qps", "10000000"},
		{qps("target_qps", ".nan"), "workload.target_qps", "finite"},
		{qps("target_qps", "fast"), "workload.target_qps", "a number"},
		{qps("max_in_flight", "0"), "workload.max_in_flight", "least"},
		{base("workload", "on_disconnect", "retry"), "workload.on_disconnect", "one of fail, reconnect"},
		{base("workload", "reconnect_for_seconds", "30"), "workload.reconnect_for_seconds", "on_disconnect: reconnect"},
		{base("workload", "tolerate_outage_seconds", "30"), "workload.tolerate_outage_seconds", "on_disconnect: reconnect"},
		{reconnect("reconnect_for_seconds", "0"), "workload.reconnect_for_seconds", "more than 0"},
		{reconnect("tolerate_outage_seconds", "301"), "workload.tolerate_outage_seconds", "longer than the 300 s"},
		{reconnect("load_mode", "FIND_MAX_CONCURRENCY"), "workload.on_disconnect", "no meaning in a search"},
		{base("workload", "catch_up", "drop"), "workload.catch_up", "no meaning in a closed loop"},
		{qps("catch_up", "all"), "workload.catch_up", "one of spread, burst, drop"},
		{qps("think_time_ms", "5"), "workload.think_time_ms", "no meaning in an open loop"},
		{qps("arrival", "workload"), "workload.target_qps", "no meaning with arrival: workload"},
		{qps("arrival", "uniform"), "workload.arrival", "one of constant, poisson, workload"},
		{qps("stages", "[{duration_seconds: 5, target_qps: 0}]"), "workload.stages[0].target_qps", "must be more than 0"},
		{qps("stages", "[{duration_seconds: 5, connections: 5}]"), "workload.stages[0].target_qps", "in an open loop"},
		{strings.Replace(qps("stages", "[{duration_seconds: 5, target_qps: 7}, {duration_seconds: 6, target_qps: 7}]"),
			"plugin: mix", "plugin: mix, duration_seconds: 12", 1), "workload.duration_seconds", "the stages last 11 s"},
		{base("workload", "seed", "-3"), "workload.seed", "least"},
		{base("scaling", "worker_count", "17"), "scaling.worker_count", "at least one connection"},
		{base("scaling", "per_worker_capacity", "8"), "workload.concurrent_connections", "do not fit"},
		{base("scaling", "mode", "BOUNDED"), "scaling.max_workers", "is required"},
		{base("guardrails", "max_cpu_percent", "101"), "guardrails.max_cpu_percent", "100"},
		{base("target", "housekeeping_warehouse", "SMALL_WH"), "target.housekeeping_warehouse", "needs target.warehouse"},
		{base("target", "prepare", "{rows: 0}"), "target.prepare.rows", "least"},
		{base("target", "prepare", "{rows: 5, if_exists: drop}"), "target.prepare.if_exists", "one of use, recreate, fail"},
		{base("target", "connection", "{driver: postgres}"), "target.connection.dsn", "required"},
		{base("target", "connection", "{driver: oracle, dsn: x}"), "target.connection.driver", "postgres"},
		{base("target", "connection", "7"), "target.connection", "text"},
		{base("target", "table_name", `""`), "target.table_name", "empty"},
		{small + "thresholds: [p95 < 3]\n", "thresholds[0]", "metric"},
		{small + "tags: {a: 5}\n", "tags.a", "text"},
		{"name: x\n", "target", "required"},
		{"", "(document)", "empty"},
		{"- a\n", "(document)", "group of fields"},
		{"name: x\nname: y\n", "name", "twice"},
		{"name: [\n", "(line", "YAML"},
		{small + "---\nname: second\n", "(document)", "more than one"},
		{"name: \"a\\0b\"\n" + small[len("\nname: small\n"):], "name", "NUL"},
		{"name: !!binary aGk=\n", "name", "type"},
		{"a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, " +
			"*b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, " +
			"*e, *e, *e, *e]\n", "", "too large"},
	} {
		_, err := Parse([]byte(tc.doc))
		var e *engine.Error
		if !errors.As(err, &e) || e.Code != engine.CodeInvalid {
			t.Errorf("%q: got %v, want an invalid-field error", tc.doc, err)
			continue
		}
		found := false
		for _, f := range e.Fields {
			found = found || strings.HasPrefix(f.Field, tc.field) && strings.Contains(f.Message+" "+f.Hint, tc.words)
		}
		if !found {
			t.Errorf("%q:\n got %v\nwant %s … %s", tc.doc, e, tc.field, tc.words)
		}
	}
}

func TestErrorsKnowTheirLine(t *testing.T) {
	_, err := Parse([]byte("name: x\ntarget:\n  connection: playground\n  table_name: t\nworkload:\n  plugin: mix\n  " +
		"seed: -1\n"))
	var e *engine.Error
	if !errors.As(err, &e) || e.Fields[0].Line != 7 {
		t.Errorf("got %+v", err)
	}
}

func TestJSONMeansTheSameAsInJSON(t *testing.T) {
	for _, name := range []string{`\ud83d\ude80 \u00e9`, "del \x7f", `a\/b "c" \\ \t`, "\u0085\u2028\ufeff"} {
		name = strings.ReplaceAll(name, `"c"`, `\"c\"`)
		source := []byte("{\n\t\"name\": \"" + name + "\",\n\t\"target\": {\"connection\": \"playground\", " +
			"\"table_name\": \"orders\"},\n\t\"workload\": {\"plugin\": \"mix\", \"seed\": 4e1}\n}")
		var want struct{ Name string }
		if err := json.Unmarshal(source, &want); err != nil {
			t.Fatal(err)
		}
		s, err := Parse(source)
		if err != nil || s.Name != want.Name || s.Workload.Seed != 40 {
			t.Errorf("%q became %q: %v", want.Name, s.Name, err)
			continue
		}
		set, err := replaced(source, "workload.seed", "7")
		if err != nil {
			t.Errorf("setting a field beside %q: %v", want.Name, err)
			continue
		}
		if s, err = Parse(set); err != nil || s.Name != want.Name || s.Workload.Seed != 7 {
			t.Errorf("%q became %q after Set: %v", want.Name, s.Name, err)
		}
		text, err := YAML(s)
		if err != nil {
			t.Errorf("writing %q: %v", want.Name, err)
			continue
		}
		if s, err = Parse(text); err != nil || s.Name != want.Name {
			t.Errorf("%q became %q as YAML: %v", want.Name, s.Name, err)
		}
	}
}

func TestOlderSpellings(t *testing.T) {
	s, err := Parse([]byte(`
name: older
target: {connection: playground, table_name: t, table_type: POSTGRES}
workload: {plugin: mix, read_percent: 80, write_percent: 20}
scaling: {worker_group_count: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	var params struct{ Weights map[string]float64 }
	if err := json.Unmarshal(s.Workload.Params, &params); err != nil {
		t.Fatal(err)
	}
	if params.Weights["POINT_LOOKUP"] != 80 || params.Weights["INSERT"] != 10 || s.Scaling.WorkerCount != 4 {
		t.Errorf("got %v, %d workers", params.Weights, s.Scaling.WorkerCount)
	}
}

func TestSet(t *testing.T) {
	source := []byte("name: x # keep me\ntarget: {connection: playground, table_name: t}\nworkload:\n  plugin: mix # " +
		"and me\nthresholds: [p95_ms < 5]\n")
	for _, set := range [][2]string{
		{"workload.concurrent_connections", "32"},
		{"workload.params.weights.POINT_LOOKUP", "100"},
		{"target.prepare", "{rows: 10}"},
		{"thresholds[0]", "p99_ms < 7"},
		{"thresholds.1", "qps > 1"},
		{"tags.ticket", "PERF-1"},
	} {
		var err error
		if source, err = replaced(source, set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Parse(source)
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	if s.Workload.ConcurrentConnections != 32 || s.Target.Prepare.Rows != 10 || s.Thresholds[0] != "p99_ms < 7" ||
		len(s.Thresholds) != 2 || s.Tags["ticket"] != "PERF-1" || !strings.Contains(string(s.Workload.Params), "100") {
		t.Errorf("got %+v", s)
	}
	if !strings.Contains(string(source), "# keep me") || !strings.Contains(string(source), "# and me") {
		t.Errorf("comments are gone:\n%s", source)
	}
	for _, bad := range []string{"", ".", "name.x", "thresholds.9", "thresholds.x"} {
		if _, err := replaced(source, bad, "1"); err == nil {
			t.Errorf("path %q was accepted", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add(
		[]byte(
			`{"name":"x","target":{"connection":{"driver":"postgres","dsn":"postgres://h/d"},"table_name":"t"},"workload":{"plugin":"mix"}}`,
		),
	)
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		s, err := Parse(source)
		if err != nil {
			var e *engine.Error
			if !errors.As(err, &e) {
				t.Fatalf("an error that is not for users: %v", err)
			}
			return
		}
		text, err := YAML(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err != nil {
			t.Fatalf("what YAML wrote is refused: %v\n%s", err, text)
		}
	})
}

func TestSearchFields(t *testing.T) {
	const head = "name: x\ntarget: {connection: playground, table_name: t}\nworkload: {plugin: mix, load_mode: " +
		"FIND_MAX_CONCURRENCY}\n"
	s, err := Parse([]byte(head))
	if err != nil {
		t.Fatal(err)
	}
	if f := s.FindMax; !f.Enabled || f.Unit != engine.FindMaxConnections ||
		s.Workload.ConcurrentConnections != f.StartConcurrency || s.Scaling.PerWorkerCapacity != 1000 || f.SLO != nil {
		t.Errorf("defaults %+v, %+v", f, s.Scaling)
	}
	s, err = Parse([]byte(head + "find_max: {unit: rate, start_rate: 250}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.FindMax.RateIncrement == nil || *s.FindMax.RateIncrement != 250 || s.Workload.ConcurrentConnections != 64 {
		t.Errorf("over the rate %+v", s.FindMax)
	}
	again, err := Complete(s)
	if err != nil || *again.FindMax.RateIncrement != 250 {
		t.Errorf("completed again: %+v, %v", again.FindMax, err)
	}
	for _, c := range []struct{ find, field string }{
		{"{unit: rate}", "find_max.start_rate"},
		{"{unit: rate, start_rate: 0}", "find_max.start_rate"},
		{"{unit: rate, start_rate: 1000000000}", "find_max.start_rate"},
		{"{unit: rate, start_rate: .nan}", "find_max.start_rate"},
		{"{unit: rate, start_rate: 500, max_rate: 100}", "find_max.max_rate"},
		{"{unit: rate, start_rate: 500, rate_increment: -1}", "find_max.rate_increment"},
		{"{unit: rate, start_rate: 500, max_concurrency: 9}", "find_max.max_concurrency"},
		{"{start_rate: 500}", "find_max.start_rate"},
		{"{start_concurrency: 10, max_concurrency: 9}", "find_max.max_concurrency"},
		{"{concurrency_increment: 0}", "find_max.concurrency_increment"},
		{"{slo: {}}", "find_max.slo"},
		{"{slo: {p95_ms: 0}}", "find_max.slo.p95_ms"},
		{"{slo: {p95: 5}}", "find_max.slo.p95"},
		{"{step_duration_seconds: 30, max_duration_seconds: 31}", "find_max.max_duration_seconds"},
		{"{step_duration_seconds: 0.1}", "find_max.step_duration_seconds"},
	} {
		_, err := Parse([]byte(head + "find_max: " + c.find + "\n"))
		found := ""
		if err != nil {
			for _, f := range engine.AsError(err).Fields {
				found += f.Field + " "
			}
		}
		if !strings.Contains(found+" ", c.field+" ") {
			t.Errorf("%s: refused %q, want %s", c.find, found, c.field)
		}
	}
}
