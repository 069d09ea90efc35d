// Package trial tries a plugin out: the conformance suite of its authors, the smoke test that
// decides about an upload, and the measurement of what generating operations costs. It uses
// the host as a run does, and a world of its own in place of a database (plugins/sample).
package trial

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/jsonx"
	"github.com/loadstone-db/loadstone/engine/base/schema"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/sample"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// Check is one finding of Conformance.
type Check struct {
	// Name says what was tried: "module", "stream is repeatable" …
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	// Skipped checks do not apply to this plugin, or could not be tried without
	// knowing more; they count neither way.
	Skipped bool `json:"skipped,omitempty"`
	// Message is a sentence: what was found, or what is wrong.
	Message string `json:"message"`
}

// Report is what Conformance found.
type Report struct {
	Info   plugin.Info `json:"info"`
	Checks []Check     `json:"checks"`
	Passed bool        `json:"passed"`
	// NsPerOperation is the time of the generator in batches of 128, 0 for an adapter.
	NsPerOperation float64 `json:"ns_per_operation,omitempty"`
	// failure is the error of the first check that failed.
	failure error
}

// add notes a check. What the plugin itself reports through ls_error fails none but
// the first: the sample tables are not a run's, and an honest plugin may say that
// they do not suit it.
func (r *Report) add(name string, err error, message string) bool {
	if errors.Is(err, host.ErrReported) && name != checkModule {
		r.skip(name, "It could not be tried, for the plugin itself says no. "+engine.AsError(err).Message)
		return false
	}
	c := Check{Name: name, Passed: err == nil, Message: message}
	if err != nil {
		c.Message = engine.AsError(err).Message
		if !errors.As(err, new(*engine.Error)) {
			c.Message = err.Error()
		}
		if r.Passed = false; r.failure == nil {
			r.failure = err
		}
	}
	r.Checks = append(r.Checks, c)
	return err == nil
}

func (r *Report) skip(name, message string) {
	r.Checks = append(r.Checks, Check{Name: name, Passed: true, Skipped: true, Message: message})
}

// checkModule is the check that begins with the file.
const checkModule = "module"

// Conformance examines a plugin the way the server will use it, and does when a file
// is uploaded (SmokeTest): the gate, the
// manifest, and for a workload its statements, sample rows and stream on a table
// made of its own declaration. params are those of a template (nil for none); the
// defaults of the plugin's schema are filled in, as in a run. A plugin that
// requires parameters which params lacks is not asked for operations. The error
// is about the machine (no compiler, ctx ended), never about the plugin.
func Conformance(ctx context.Context, wasm []byte, params json.RawMessage) (Report, error) {
	return conformance(ctx, host.Options{}, wasm, params, true)
}

// conformance is the suite; the time of the generator is measured when asked for.
func conformance(ctx context.Context, o host.Options, wasm []byte, params json.RawMessage, timed bool) (Report, error) {
	r := Report{Passed: true, Checks: []Check{}}
	o.Log, o.CallFuel = zerolog.Nop(), suiteFuel
	h, err := host.New(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() { _ = h.Close(context.WithoutCancel(ctx)) }()
	info, err := h.Register(ctx, wasm, false)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if !r.add(checkModule, err, "The module imports and exports what the contract allows, and describes itself.") {
		return r, nil
	}
	r.Info = info
	if unknown := h.Unknown(info.SHA256); len(unknown) > 0 {
		err = fmt.Errorf("the manifest of %s says %q, which nobody reads; members of your own begin with x-", info.Name,
			unknown[0])
	}
	r.add("manifest", err, "The manifest says nothing that is not read.")
	full, complete := parameterChecks(&r, params)
	if info.Kind == plugin.KindAdapter {
		a, err := h.Adapter(ctx, info.SHA256)
		if err == nil {
			adapterChecks(ctx, &r, a)
		}
		return r, errors.Join(err, ctx.Err())
	}
	w, err := h.Workload(ctx, info.SHA256)
	if err == nil {
		if !complete {
			r.skip("stream", missingParameters(params))
			return r, nil
		}
		workloadChecks(ctx, &r, w, full, timed)
	}
	return r, errors.Join(err, ctx.Err())
}

// missingParameters is why nothing is generated: parameters are missing, or those that were given are refused above.
func missingParameters(given json.RawMessage) string {
	if len(given) > 0 {
		return "No operation was generated, since the parameters are not what the plugin takes."
	}
	return "The plugin requires parameters; give them with --params to have it generate operations."
}

// parameterChecks completes params as a run does. complete is false when they do
// not meet the plugin's schema.
func parameterChecks(r *Report, params json.RawMessage) (full json.RawMessage, complete bool) {
	doc := map[string]any{}
	if len(params) > 0 {
		dec := json.NewDecoder(bytes.NewReader(params))
		dec.UseNumber()
		if err := dec.Decode(&doc); err != nil {
			return nil, r.add("parameters", fmt.Errorf("the parameters given are not a JSON object: %w", jsonx.Explain(err)),
				"")
		}
	}
	if len(r.Info.Manifest.Parameters) == 0 {
		if len(doc) > 0 {
			return nil, r.add("parameters", errors.New("the plugin declares no parameters, but some were given"), "")
		}
		r.skip("parameters", "The plugin declares no parameters.")
		return nil, true
	}
	compiled, err := schema.Compile(r.Info.Manifest.Parameters)
	if err != nil {
		return nil, r.add("parameters", err, "")
	}
	if wrong, err := schema.CheckDefaults(r.Info.Manifest.Parameters); err != nil {
		return nil, r.add("parameters", err, "")
	} else if wrong != nil {
		return nil, r.add("parameters",
			fmt.Errorf("the default of the parameter %s does not meet its own schema: %s", wrong.Field, wrong.Message), "")
	}
	compiled.Complete(doc)
	if wrong := compiled.Check(doc, "params"); len(wrong) > 0 && len(params) > 0 {
		return nil, r.add("parameters", fmt.Errorf("%s %s", wrong[0].Field, wrong[0].Message), "")
	} else if len(wrong) > 0 {
		return nil, !r.add("parameters", wrongDefault(r.Info.Manifest.Parameters, doc, wrong),
			"The parameters are a valid JSON Schema.")
	}
	if full, err = json.Marshal(doc); err != nil {
		return nil, r.add("parameters", err, "")
	}
	return full, r.add("parameters", nil, "The parameters are a valid JSON Schema.")
}

// wrongDefault returns an error when something that is wrong comes from a default:
// what is required and has none is the user's to give.
func wrongDefault(parameters json.RawMessage, doc map[string]any, wrong []engine.FieldError) error {
	for _, w := range wrong {
		name, _, _ := strings.Cut(strings.TrimPrefix(w.Field, "params."), ".")
		name, _, _ = strings.Cut(name, "[")
		if _, given := doc[name]; given {
			return fmt.Errorf("the default of the parameter %s does not meet its own schema: %s", name, w.Message)
		}
	}
	return nil
}

func adapterChecks(ctx context.Context, r *Report, a plugin.Adapter) {
	for _, op := range []string{plugin.OpSession, plugin.OpClassifyError} {
		var answer plugin.AdapterAnswer
		err := a.Call(ctx, plugin.AdapterRequest{Op: op}, &answer)
		if errors.Is(err, plugin.ErrFailed) {
			r.skip(op, fmt.Sprintf("The adapter does not answer %q, which it need not: %s", op, engine.AsError(err).Message))
			continue
		}
		r.add(op, err, fmt.Sprintf("The adapter answers %q.", op))
	}
	var answer plugin.AdapterAnswer
	err := a.Call(ctx, plugin.AdapterRequest{Op: plugin.OpInspect, TableName: "orders"}, &answer)
	if err == nil && len(answer.Queries) == 0 && !answer.Exists {
		r.add(plugin.OpInspect, nil, "The adapter answers without asking the database.")
	} else {
		r.add(plugin.OpInspect, err, fmt.Sprintf("The adapter inspects a table with %d first queries.", len(answer.Queries)))
	}
	if err := a.Call(ctx, plugin.AdapterRequest{Op: "no such operation"}, &answer); err != nil {
		r.add("unknown operation", ctx.Err(), "An unknown operation is an error.")
		return
	}
	r.add("unknown operation", errors.New("an operation that does not exist was answered"), "")
}

const (
	checkedOps     = 2_000
	timedOps       = 200_000
	timingDuration = 500 * time.Millisecond
)

func workloadChecks(ctx context.Context, r *Report, w plugin.Workload, params json.RawMessage, timed bool) {
	declared, err := w.Tables(ctx, params)
	if r.Info.Manifest.TablesVary || err != nil {
		if !r.add("tables", err, fmt.Sprintf("With these parameters the plugin uses %d tables.", len(declared))) {
			return
		}
	}
	tables := sample.Tables(declared)
	list, err := w.Statements(ctx, params, tables)
	if err == nil && len(list) == 0 && len(r.Info.Manifest.Parameters) > 0 {
		r.skip("statements", "With these parameters there is no statement; give others with --params to have the plugin "+
			"generate operations.")
		return
	}
	if err == nil && len(list) == 0 {
		err = errors.New("with default parameters there is no statement")
	}
	if !r.add("statements", err, fmt.Sprintf("The plugin declares %d statements.", len(list))) {
		return
	}
	frozen := statementsWithoutSQL(list)
	rowChecks(ctx, r, w, declared, params)
	req := plugin.OpenRequest{Seed: 42, KeySlots: 4, Params: params, Tables: tables,
		Pools: sample.Pools(ctx, w, params, declared, tables)}
	first, err := sampleStream(ctx, w, req, frozen, 64)
	if !r.add("stream", err, fmt.Sprintf("%d operations name declared statements with arguments of the declared types.",
		first.operations)) {
		return
	}
	second, err := sampleStream(ctx, w, req, frozen, 64)
	if err == nil && first != second {
		err = errors.New("two streams of the same document differ: a stream may depend on the ls_open document only")
	}
	r.add("stream is repeatable", err, "The same document gives the same stream.")
	_, err = sampleStream(ctx, w, req, frozen, 1)
	r.add("small batches", err, "Batches of one operation are kept to.")
	_, err = sampleStream(ctx, w, req, frozen, abi.MaxBatchOps)
	r.add("large batches", err, fmt.Sprintf("Batches of up to %d operations are kept to.", abi.MaxBatchOps))
	if timed {
		r.time(ctx, w, req, frozen)
	}
}

// statementsWithoutSQL makes a run's list of statements, except for their SQL.
func statementsWithoutSQL(list []plugin.Statement) (frozen []engine.Statement) {
	for _, s := range list {
		frozen = append(frozen, engine.Statement{ID: s.ID, Kind: s.Kind, Table: s.Table, SQL: s.SQL["*"], Binds: s.Binds,
			Columns: s.Columns, Writes: s.Writes})
	}
	return frozen
}

// streamSample is what a stream gave: how much, and a hash of it. The operations follow
// from the data.
type streamSample struct {
	operations, bytes int
	data              [sha256.Size]byte
	ended             bool
}

// maxSampleBytes bounds the bytes of one stream that are looked at.
const maxSampleBytes = 64 << 20

func sampleStream(
	ctx context.Context,
	w plugin.Workload,
	req plugin.OpenRequest,
	list []engine.Statement,
	size int,
) (t streamSample,
	err error) {
	req.Feed = sample.NewFeed(list)
	s, err := w.Open(ctx, req, list)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var b plugin.Batch
	hash := sha256.New()
	defer func() { hash.Sum(t.data[:0]) }()
	for t.operations < checkedOps && t.bytes < maxSampleBytes {
		if err := s.Fill(&b, size); err != nil {
			t.ended = errors.Is(err, plugin.ErrEnded)
			switch {
			case t.ended && t.operations > 0:
				return t, nil
			case t.ended:
				return t, errors.New("the stream ends before its first operation: ls_fill returned a batch of length 0")
			}
			return t, err
		}
		t.operations += len(b.Ops)
		if err := noNUL(&b, list); err != nil {
			return t, err
		}
		t.bytes += len(b.Data)
		hash.Write(b.Data)
	}
	return t, ctx.Err()
}

func rowChecks(ctx context.Context, r *Report, w plugin.Workload, declared []plugin.LogicalTable,
	params json.RawMessage) {
	if !slices.Contains(r.Info.Exports, abi.ExportRows) || len(declared) == 0 {
		r.skip("sample rows", "The plugin makes no sample rows; its tables must exist.")
		return
	}
	for i, t := range declared {
		if t.Empty {
			continue
		}
		name := "sample rows of " + t.Name
		whole, err := w.Rows(ctx, params, i, 0, 100)
		if !r.add(name, ignoreEnd(err), "Sample rows have the declared columns.") || err != nil {
			continue
		}
		keys := keyChecker{table: &t, seen: map[string]int64{}}
		err = keys.check(whole, 0)
		// What begins well may repeat itself: the last rows are looked at, too.
		if last := lastRows(&t); err == nil && last > 0 {
			var rows plugin.Rows
			if rows, err = w.Rows(ctx, params, i, last, 100); err == nil {
				err = keys.check(rows, last)
			}
		}
		r.add("keys of "+t.Name, ignoreEnd(err), "Keys are not NULL, are not there twice, and texts can be stored.")
		if whole.Len() < 2 {
			continue
		}
		part, err := w.Rows(ctx, params, i, int64(whole.Len()-1), 1)
		if err == nil {
			for c := range t.Columns {
				if !reflect.DeepEqual(whole.Value(whole.Len()-1, c), part.Value(0, c)) {
					err = fmt.Errorf("row %d has another %s when asked for alone: a row may depend on its number only", whole.Len()-1,
						t.Columns[c].Name)
					break
				}
			}
		}
		r.add(name+" are repeatable", err, "A row depends on its number only.")
	}
}

// lastRows is where the last hundred rows of a sample table begin, 0 where the first
// hundred are all or nearly all.
func lastRows(t *plugin.LogicalTable) int64 {
	rows := t.Rows
	if rows == 0 {
		rows = sample.Rows
	}
	if rows < 200 {
		return 0
	}
	return rows - 100
}

// keyChecker are the keys of a table's sample rows, each with the number of its row.
type keyChecker struct {
	table *plugin.LogicalTable
	seen  map[string]int64
}

// check looks for what a database would refuse of sample rows, the first of which has
// the number first.
func (k *keyChecker) check(rows plugin.Rows, first int64) error {
	t := k.table
	for i := range rows.Len() {
		key, n := "", first+int64(i)
		for c, column := range t.Columns {
			v := rows.Value(i, c)
			if text, ok := v.(string); ok && strings.ContainsRune(text, 0) {
				return fmt.Errorf("ls_rows: row %d of %s has a NUL in %s, which databases refuse in a text", n, t.Name, column.Name)
			}
			if !slices.Contains(t.Key, column.Name) {
				continue
			}
			if v == nil {
				return fmt.Errorf("ls_rows: row %d of %s has NULL in %s, a column of its key", n, t.Name, column.Name)
			}
			key += fmt.Sprintf("%v\x00", v)
		}
		if other, twice := k.seen[key]; twice && len(t.Key) > 0 {
			return fmt.Errorf("ls_rows: rows %d and %d of %s have the same key", other, n, t.Name)
		}
		k.seen[key] = n
	}
	return nil
}

// noNUL refuses what databases do not store in a text.
func noNUL(b *plugin.Batch, list []engine.Statement) error {
	for _, op := range b.Ops {
		for a, v := range b.Args[op.FirstArg : op.FirstArg+uint32(op.NArgs)] {
			if v.Type == engine.TypeText && bytes.IndexByte(b.Bytes(v), 0) >= 0 {
				return fmt.Errorf("ls_fill: argument %d of %s has a NUL, which databases refuse in a text", a,
					list[op.Statement].ID)
			}
		}
	}
	return nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, plugin.ErrEnded) {
		return nil
	}
	return err
}

// time measures the generator; it judges nothing.
func (r *Report) time(ctx context.Context, w plugin.Workload, req plugin.OpenRequest, list []engine.Statement) {
	req.Feed = sample.NewFeed(list)
	s, err := w.Open(ctx, req, list)
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	var b plugin.Batch
	n, begin := 0, time.Now()
	for n < timedOps && time.Since(begin) < timingDuration && ctx.Err() == nil {
		if s.Fill(&b, 128) != nil {
			break
		}
		n += len(b.Ops)
	}
	if n > 0 {
		r.NsPerOperation = float64(time.Since(begin).Nanoseconds()) / float64(n)
		r.Checks = append(r.Checks, Check{Name: "speed", Passed: true,
			Message: fmt.Sprintf("%.0f ns per operation in batches of 128.", r.NsPerOperation)})
	}
}
