// Package template reads the document that configures a run: YAML or JSON, the
// same shape. The JSON Schema beside this file is the one description of it:
// it is served to editors, checks every document, and holds the defaults.
package template

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/plan/threshold"
)

//go:embed schema.json
var embedded []byte

// schemaText is the schema, with the fields of a target wherever a target is.
var schemaText = withTargets(embedded)

var compiled = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile(schemaText)
	if err != nil {
		panic(fmt.Sprintf("the embedded template schema is wrong: %v", err))
	}
	return s
})

// Schema returns the JSON Schema of a template.
func Schema() []byte { return append([]byte(nil), schemaText...) }

// Parse reads a template from YAML or JSON, checks it and fills in the
// defaults. Its error is an *engine.Error (CodeInvalid) that names every wrong field.
func Parse(source []byte) (engine.Scenario, error) {
	doc, err := read(source)
	if err != nil {
		return engine.Scenario{}, err
	}
	return doc.scenario()
}

func (d *document) scenario() (engine.Scenario, error) {
	translate(d.root)
	fields := append(oneTarget(d.root), compiled().Check(d.root, "")...)
	if len(fields) > 0 {
		return engine.Scenario{}, d.refuse(fields)
	}
	compiled().Complete(d.root)
	derive(d.root)
	text, err := json.Marshal(d.root)
	if err != nil {
		return engine.Scenario{}, fmt.Errorf("writing the template as JSON: %w", err)
	}
	var s engine.Scenario
	if err := json.Unmarshal(text, &s); err != nil {
		return engine.Scenario{}, d.refuse([]engine.FieldError{decodeError(err)})
	}
	if fields := check(s); len(fields) > 0 {
		return engine.Scenario{}, d.refuse(fields)
	}
	return s, nil
}

// decodeError names the field that the schema let pass and the scenario cannot hold:
// a whole number beyond 64 bits, for example.
func decodeError(err error) engine.FieldError {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) && mistyped.Field != "" {
		return engine.FieldError{Field: mistyped.Field, Message: "cannot be used: " + jsonx.Explain(err).Error()}
	}
	return engine.FieldError{Field: "(document)", Message: "cannot be used: " + jsonx.Explain(err).Error()}
}

// sortByLine sorts a list by lines; what has none comes last.
func sortByLine[T any](list []T, line func(T) int) {
	slices.SortStableFunc(list, func(a, b T) int {
		switch la, lb := line(a), line(b); {
		case la == 0 || lb == 0:
			return cmp.Compare(lb, la)
		default:
			return cmp.Compare(la, lb)
		}
	})
}

// refuse puts the fields into one error, with the line of each where the document has it, in the order of the lines.
func (d *document) refuse(fields []engine.FieldError) *engine.Error {
	for i := range fields {
		d.setLine(&fields[i])
	}
	sortByLine(fields, func(f engine.FieldError) int { return f.Line })
	message := "The template has a field that cannot be used."
	switch {
	case len(fields) >= schema.MaxErrors:
		message = fmt.Sprintf("The template has many fields that cannot be used; here are %d of them.", len(fields))
	case len(fields) > 1:
		message = fmt.Sprintf("The template has %d fields that cannot be used.", len(fields))
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: message, Fields: fields}
}

// adapters maps the older table_type onto the adapter plugins.
var adapters = map[string]string{
	"POSTGRES": "postgres", "SNOWFLAKE_POSTGRES": "snowflake_postgres",
	"HYBRID": "snowflake_hybrid", "STANDARD": "snowflake_standard", "INTERACTIVE": "snowflake_interactive",
}

// translate rewrites the older spellings before the defaults apply.
func translate(root map[string]any) {
	for _, target := range targetsOf(root) {
		if kind, ok := target["table_type"].(string); ok && target["adapter"] == nil {
			if adapter, ok := adapters[strings.ToUpper(kind)]; ok {
				target["adapter"] = adapter
			}
		}
	}
	if scaling, ok := root["scaling"].(map[string]any); ok {
		if groups := scaling["worker_group_count"]; groups != nil && scaling["worker_count"] == nil {
			scaling["worker_count"] = groups
		}
	}
	workload, ok := root["workload"].(map[string]any)
	if !ok {
		return
	}
	translateLoad(workload)
	translateSearch(root, workload)
	if workload["plugin"] != "mix" {
		return
	}
	reads, haveReads := asFloat(workload["read_percent"])
	writes, haveWrites := asFloat(workload["write_percent"])
	if !haveReads && !haveWrites {
		return
	}
	if !haveReads {
		reads = 100 - writes
	}
	if !haveWrites {
		writes = 100 - reads
	}
	params, ok := workload["params"].(map[string]any)
	if !ok {
		if workload["params"] != nil {
			return
		}
		params = map[string]any{}
		workload["params"] = params
	}
	if params["weights"] == nil && reads >= 0 && writes >= 0 {
		params["weights"] = map[string]any{"POINT_LOOKUP": reads, "INSERT": writes / 2, "UPDATE": writes / 2}
	}
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// derive fills the fields whose default depends on others.
func derive(root map[string]any) {
	workload, _ := root["workload"].(map[string]any)
	if workload["params"] == nil {
		workload["params"] = map[string]any{}
	}
	deriveSearch(root, workload)
	deriveLabels(root)
	scaling, _ := root["scaling"].(map[string]any)
	if scaling["per_worker_capacity"] == nil {
		capacity := int64(100)
		if scaling["mode"] == "FIXED" {
			// Without a limit of its own, a FIXED run takes what it is asked for.
			c := max(maxConnections(workload), maxSearchConnections(root, workload))
			n, _ := asFloat(normalizeNumbers(scaling["worker_count"]))
			capacity = int64(math.Ceil(c / math.Max(n, 1)))
		}
		scaling["per_worker_capacity"] = capacity
	}
}

// normalizeNumbers turns the schema's own numbers (json.Number) into int64 or float64.
func normalizeNumbers(v any) any {
	if n, ok := v.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
		f, _ := n.Float64()
		return f
	}
	return v
}

// Check judges a scenario that did not come through Parse. Its error is an
// *engine.Error that names every wrong field.
func Check(s engine.Scenario) error {
	_, err := Complete(s)
	return err
}

// Complete returns the scenario checked and with its defaults filled in.
func Complete(s engine.Scenario) (engine.Scenario, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return engine.Scenario{}, invalid("(document)", "cannot be written as JSON", "", 0)
	}
	return Parse(text)
}

// checkHousekeeping refuses a warehouse for what is asked beside the load where that of the load is not named: the
// session's would be polled, which is the other one.
func checkHousekeeping(field string, t engine.Target, add func(field, message, hint string)) {
	if t.HousekeepingWarehouse != "" && t.Warehouse == "" {
		add(field+".housekeeping_warehouse", "needs "+field+".warehouse", "name the warehouse of the load too")
	}
}

// check judges what a schema cannot: fields that depend on each other.
func check(s engine.Scenario) []engine.FieldError {
	var fields []engine.FieldError
	add := func(field, message, hint string) {
		fields = append(fields, engine.FieldError{Field: field, Message: message, Hint: hint})
	}
	for _, c := range s.Connections() {
		if c.Ref.Inline() && c.Ref.DSN == "" && c.Ref.DSNSealed == "" {
			add(c.Field+".dsn", "is required", "how to reach the database: postgres://user:password@host:5432/database")
		}
	}
	checkMatrix(s, add)
	checkHousekeeping("target", s.Target, add)
	w := s.Workload
	checkLoad(w, add)
	switch f := w.Feed; {
	case f == nil:
	case f.Run == "" && f.CSV == "":
		add("workload.feed", "is empty", "name a run, or give a csv")
	case f.Run != "" && f.CSV != "":
		add("workload.feed", "has a run and a csv", "keep one of them")
	case len(f.CSV) > engine.MaxFeedCSV:
		add("workload.feed.csv", fmt.Sprintf("has %d bytes, more than the %d that are possible", len(f.CSV),
			engine.MaxFeedCSV), "replay a part of it")
	}
	if w.ReadPercent != nil && w.WritePercent != nil && *w.ReadPercent+*w.WritePercent != 100 {
		add("workload.write_percent", "read_percent and write_percent do not add up to 100", "")
	}
	checkSearch(s, add)
	if s.FindMax.Enabled && w.LoadMode != engine.LoadFindMax {
		add("find_max.enabled", "is true, but load_mode is "+string(w.LoadMode),
			"set workload.load_mode: FIND_MAX_CONCURRENCY, or remove it")
	}
	sc := s.Scaling
	if sc.Mode == engine.ScalingFixed {
		if most := sc.WorkerCount * sc.PerWorkerCapacity; peakConnections(w) > most {
			add("workload.concurrent_connections",
				fmt.Sprintf("%d connections do not fit: scaling.worker_count %d × scaling.per_worker_capacity %d = %d",
					peakConnections(w), sc.WorkerCount, sc.PerWorkerCapacity, most),
				"raise worker_count or per_worker_capacity, or ask for fewer connections")
		}
		if w.ConcurrentConnections < sc.WorkerCount {
			add("scaling.worker_count",
				fmt.Sprintf("%d run workers cannot share %d connections", sc.WorkerCount, w.ConcurrentConnections),
				"each run worker needs at least one connection")
		}
	}
	if sc.Mode == engine.ScalingBounded {
		peak := s.PeakConnections(0)
		switch {
		case sc.MaxWorkers < 1:
			add("scaling.max_workers", "is required with mode BOUNDED", "the most run workers, for example 4")
		case sc.MinWorkers > sc.MaxWorkers:
			add("scaling.min_workers", fmt.Sprintf("%d is more than max_workers %d", sc.MinWorkers, sc.MaxWorkers),
				"lower it, or raise max_workers")
		case sc.MinWorkers > w.ConcurrentConnections:
			add("scaling.min_workers", fmt.Sprintf("%d run workers cannot share %d connections", sc.MinWorkers,
				w.ConcurrentConnections), "each run worker needs at least one connection")
		case peak > sc.Capacity():
			add("scaling.max_workers", fmt.Sprintf(
				"%d connections do not fit: %d × scaling.per_worker_capacity %d = %d",
				peak,
				sc.MaxWorkers,
				sc.PerWorkerCapacity,
				sc.Capacity(),
			), "raise it or per_worker_capacity, or ask for fewer connections")
		}
	}
	fields = append(fields, checkRules(s.Rules)...)
	for i, text := range s.Thresholds {
		if _, err := threshold.Parse(text); err != nil {
			add(fmt.Sprintf("thresholds[%d]", i), err.Error(), "for example: p95_ms < 20")
		}
	}
	return fields
}
