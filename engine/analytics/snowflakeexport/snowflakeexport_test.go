package snowflakeexport_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	resultsrecord "github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}, targettest.SnowflakeDriverLeak()) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)

// record is the record of one run: so many executions for each part.
type record struct {
	parts         map[string]int
	lost          string
	damaged       string
	gone          bool
	expires       bool        // the single executions are deleted between the reading of the run and of its parts
	expired, late engine.Time // late: when the part that is lost was deleted
	polls         []string
	segment       int                        // its size
	logs, logSize int                        // so many lines with two texts of that length
	pending       bool                       // it is still to be made
	enriched      []engine.EnrichedExecution // of which the artifact's sum is the number
}

func (r *record) content(name string) string { return fmt.Sprint(name, " of ", r.parts[name]) }

func (r *record) Artifacts(context.Context, string) (all []engine.Artifact, err error) {
	if r.expires {
		r.expired, r.parts = engine.At(noon), nil
	}
	for name := range r.parts {
		sum := sha256.Sum256([]byte(r.content(name)))
		all = append(all, engine.Artifact{RunID: "r", ResultID: "w0", Name: name, SHA256: hex.EncodeToString(sum[:]),
			Kind: resultsrecord.KindExecutions})
	}
	if len(r.enriched) > 0 {
		all = append(all, engine.Artifact{RunID: "r", Name: "enrichment-00001.parquet", Kind: resultsrecord.KindEnrichment,
			SHA256: fmt.Sprint(len(r.enriched))})
	}
	return append(all, engine.Artifact{RunID: "r", Name: "other", Kind: resultsrecord.KindParams}), nil
}

func (r *record) RunRows(_ context.Context, _, table string, each func(map[string]json.RawMessage) error) error {
	var rows []string
	switch table {
	case "test_results":
		rows = []string{`{"test_id":"r","run_id":"r","status":"COMPLETED","figures":{"a":0.1},"p95_latency_ms":7.5}`,
			`{"test_id":"w0","run_id":"r","worker_id":"worker-0","worker_group_id":0,"status":"COMPLETED","passed":null}`}
	case "warehouse_poll_snapshots":
		rows = r.polls
	case "test_logs":
		for i := range r.logs {
			rows = append(rows, fmt.Sprintf(`{"log_id":"%[1]d","run_id":"r","seq":%[1]d,"level":"info","message":%[2]q,
				"timestamp":"2026-11-22T12:00:00Z","details":{"text":%[2]q}}`, i, strings.Repeat("x", r.logSize)))
		}
	case "test_templates":
		rows = []string{`{"template_id":"t","template_name":"nightly","config":{"name":"nightly"},"version":3}`}
	case "find_max_step_history":
		rows = []string{`{"step_id":"s","run_id":"r","step_number":1,"total_target_connections":5,
			"step_start_time":"2026-11-22T13:00:00.5+01:00","queue_detected":true}`}
	}
	for _, text := range rows {
		row := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// queryID is that of every second execution.
const queryID = "01b2c3d4-0000-4000-8000-00000000002a"

func (r *record) LatestSegmentContent(context.Context, string) ([]byte, error) {
	if r.segment == 0 {
		return nil, store.ErrNotFound
	}
	return make([]byte, r.segment), nil
}

func (r *record) Enriched(_ context.Context, _ string, fn func(*engine.EnrichedExecution) error) (int, error) {
	for i := range r.enriched {
		if err := fn(&r.enriched[i]); err != nil {
			return 0, err
		}
	}
	return len(r.enriched), nil
}

type text struct{ *bytes.Reader }

func (text) Close() error { return nil }

func (r *record) Open(_ context.Context, _, name string) (io.ReadSeekCloser, int64, error) {
	if name == r.lost {
		r.expired = r.late
		return nil, 0, store.ErrNotFound
	}
	content := r.content(name)
	return text{bytes.NewReader([]byte(content))}, int64(len(content)), nil
}

func (r *record) ReadExecutions(_ context.Context, _, name string, fn func(*rollup.Executions) error) error {
	x := &rollup.Executions{}
	x.Kind, x.Statement = resultsrecord.Texts{
		Values: []string{"POINT_LOOKUP"},
	}, resultsrecord.Texts{
		Values: []string{"get"},
	}
	x.Worker, x.Class = resultsrecord.Texts{Values: []string{"worker-0"}}, resultsrecord.Texts{Values: []string{"timeout"}}
	x.QueryID = resultsrecord.Texts{Values: []string{queryID}}
	x.Code, x.Message = resultsrecord.Texts{}, resultsrecord.Texts{Values: []string{"größer 'als' \"das\"\n;"}}
	for i := range r.parts[name] {
		failed := int32(-1)
		if i%10 == 0 {
			failed = 0
		}
		x.DueNs, x.StartedNs = append(x.DueNs, noon.Add(time.Duration(i)*time.Millisecond).UnixNano()),
			append(x.StartedNs, noon.UnixNano())
		x.ElapsedNs = append(x.ElapsedNs, int64(i)*1e6+125_000)
		x.ElapsedMs, x.LagMs, x.WaitMs = append(x.ElapsedMs, float64(i)+0.125), append(x.LagMs, 0), append(x.WaitMs, 0)
		x.Seq, x.Connection, x.Step = append(x.Seq, int32(i)), append(x.Connection, 7), append(x.Step, 0)
		x.Retries, x.DecodeNs, x.Rows = append(x.Retries, 0), append(x.DecodeNs, 12), append(x.Rows, 2)
		x.Position, x.Warmup = append(x.Position, 0), append(x.Warmup, i < 5)
		x.Success, x.RolledBack = append(x.Success, failed < 0), append(x.RolledBack, false)
		x.Kind.Index, x.Statement.Index = append(x.Kind.Index, 0), append(x.Statement.Index, 0)
		x.Worker.Index, x.Class.Index = append(x.Worker.Index, 0), append(x.Class.Index, failed)
		x.Code.Index, x.Message.Index = append(x.Code.Index, -1), append(x.Message.Index, failed)
		x.QueryID.Index = append(x.QueryID.Index, int32(i%2)-1)
	}
	if err := fn(x); err != nil {
		return err
	}
	if name == r.damaged {
		return errors.New("damaged Parquet data")
	}
	return nil
}

// account is an account whose step of that number fails, before it is done or after.
type account struct {
	snowflakeexport.Account
	steps, failAt int
	after         bool
	// as, if any, is what a statement of a transaction becomes on its way.
	as func(sql string) string
	// before, if any, is called before each step.
	before func(step int)
	// named, if any, is told the names of transactions.
	named func(string)
}

var errFault = errors.New("killed here")

func (a *account) step(f func() error) error {
	a.steps++
	if a.before != nil {
		a.before(a.steps)
	}
	fails := a.steps == a.failAt
	if fails && !a.after {
		return errFault
	}
	err := f()
	if fails && err == nil {
		return errFault
	}
	return err
}

func (a *account) Exec(ctx context.Context, sql ...string) error {
	return a.step(func() error { return a.Account.Exec(ctx, sql...) })
}

func (a *account) Put(ctx context.Context, path string, content []byte) error {
	return a.step(func() error { return a.Account.Put(ctx, path, content) })
}

func (a *account) InTransaction(ctx context.Context, name string, f func(target.Tx) error) error {
	if a.named != nil {
		a.named(name)
	}
	return a.step(func() error {
		return a.Account.InTransaction(ctx, name, func(t target.Tx) error { return f(within{t, a}) })
	})
}

type within struct {
	target.Tx
	a *account
}

func (w within) Exec(ctx context.Context, sql string, args ...any) error {
	if w.a.as != nil {
		sql = w.a.as(sql)
	}
	return w.a.step(func() error { return w.Tx.Exec(ctx, sql, args...) })
}

// world is a record and an account that takes it.
type world struct {
	*record
	*account
	sim    *snowsim.Server
	export *snowflakeexport.Export
	proof  error
	book   snowflakeexport.ExportStatus
	// counted is the highest epoch that the control store has given.
	counted int64
}

// NoteExport implements Book.
func (w *world) NoteExport(_ context.Context, _ refresh.Claim, s snowflakeexport.ExportStatus) error {
	w.book = s
	return nil
}

func newWorld(t *testing.T, denied ...translate.Denied) *world {
	t.Helper()
	s, err := snowsim.Start(t.Context(),
		snowsim.Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 1000, Seed: 1,
			Log: zerolog.Nop(), Denied: denied})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	d, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New("snowflake://" + s.DSN())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := &world{
		record:  &record{parts: map[string]int{"a": 100, "b": 50}},
		account: &account{Account: d.(snowflakeexport.Account)},
		sim:     s,
	}
	w.restart()
	return w
}

// apply makes the schema, as loadstone schema apply does.
func (w *world) apply(t *testing.T) (refused string) {
	t.Helper()
	done, err := snowflakeexport.ApplySchema(t.Context(), w.Account)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range done {
		if d.Refused != "" {
			refused += d.Name + ": " + d.Refused + "\n"
		}
	}
	return refused
}

// newWorldWithSchema is a world whose account has the schema.
func newWorldWithSchema(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if refused := w.apply(t); refused != "" {
		t.Fatal(refused)
	}
	return w
}

// restart makes a process anew, as far as it is about exports.
func (w *world) restart() {
	w.export = &snowflakeexport.Export{
		Store:         w.record,
		Record:        w.record,
		Account:       w.account,
		Cure:          "loadstone schema apply --snowflake lake",
		StatusStore:   w,
		IngestPending: func(context.Context, string) (bool, error) { return w.pending, nil },
		RaiseEpochs: func(_ context.Context, above int64) (bool, error) {
			raised := w.counted < above
			w.counted = max(w.counted, above)
			return raised, nil
		},
		Detail: func(context.Context, string) (engine.RunDetail, error) {
			if w.gone {
				return engine.RunDetail{}, &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound}
			}
			return engine.RunDetail{Run: engine.Run{RunID: "r", RunName: "nightly", TemplateID: "t", StartTime: engine.At(noon),
				ExecutionsDeletedAt: w.expired}}, nil
		},
	}
}

func (w *world) take(t *testing.T, epoch int64) (refresh.Result, error) {
	t.Helper()
	c := refresh.Claim{Task: refresh.Task{Table: snowflakeexport.Table, Subtask: "r"}, Epoch: epoch}
	return w.export.Run(t.Context(), c, func(context.Context) error { return w.proof })
}

func (w *world) one(t *testing.T, sql string) string {
	t.Helper()
	rs, err := w.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(rs.Rows[0]...)
}

const copies = `SELECT COUNT(*) || ' of ' || COUNT(DISTINCT PART || '-' || SEQ) FROM QUERY_EXECUTIONS
	WHERE RUN_ID = 'r'`

// known counts results, runs that views show, steps and templates.
const known = `SELECT (SELECT COUNT(*) FROM TEST_RESULTS) || ' ' || (SELECT COUNT(*) FROM V_RUN_SUMMARY) || ' ' ||
	(SELECT COUNT(*) FROM FIND_MAX_STEP_HISTORY) || ' ' || (SELECT COUNT(*) FROM TEST_TEMPLATES)`

// TestARunIsInTheAccountOnce: its executions are there with their values, are not sent again, follow their parts, and
// go with the run.
func TestARunIsInTheAccountOnce(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	for epoch := int64(1); epoch < 3; epoch++ {
		if r, err := w.take(t, epoch); err != nil || r.Unchanged != (epoch > 1) || epoch == 1 && r.Rows != 150 {
			t.Fatalf("epoch %d: %+v, %v", epoch, r, err)
		}
	}
	if got := w.one(t, copies); got != "150 of 150" {
		t.Errorf("there are %s executions", got)
	}
	got := w.one(t, `SELECT APP_ELAPSED_MS || '|' || TO_CHAR(DUE_AT, 'YYYY-MM-DD HH24:MI:SS.FF6') || '|' || ERROR_CLASS ||
		'|' || ERROR_MESSAGE || '|' || WORKER_ID || '|' || QUERY_KIND || '|' || CONNECTION_ID
		FROM QUERY_EXECUTIONS WHERE PART = 'a' AND SEQ = 10`)
	want := "10.125|2026-11-22 12:00:00.133456|timeout|größer 'als' \"das\"\n;|worker-0|POINT_LOOKUP|7"
	if got != want {
		t.Errorf("an execution is %q, not %q", got, want)
	}
	if got := w.one(t, `SELECT SUM(IFF(SUCCESS, 1, 0)) || ' ' || SUM(IFF(WARMUP, 1, 0)) || ' ' || COUNT(ERROR_CODE) ||
		' ' || COUNT(ERROR_CLASS) FROM QUERY_EXECUTIONS`); got != "135 10 0 15" {
		t.Errorf("successes, warm-up, codes and classes: %s", got)
	}
	// A part is another one, one is gone, one cannot be read, one is lost.
	w.parts = map[string]int{"a": 120, "c": 30, "d": 10, "e": 10}
	w.damaged, w.lost = "d", "e"
	r, err := w.take(t, 3)
	if err != nil || r.Rows != 150 || !strings.Contains(r.Note, "2 of 4") {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := w.one(t, copies); got != "150 of 150" {
		t.Errorf("there are %s executions", got)
	}
	if got := w.one(t, "SELECT COUNT(*) || ' ' || SUM(ROW_COUNT) FROM LOADSTONE_PARTS"); got != "2 150" {
		t.Errorf("parts and their rows: %s", got)
	}
	// Single executions that are deleted while a claim is at work, and before.
	there := w.parts
	w.expires = true
	for epoch := int64(4); epoch < 6; epoch++ {
		if r, err := w.take(t, epoch); err != nil || !r.Unchanged || !strings.Contains(r.Note, "were deleted") {
			t.Errorf("%+v, %v", r, err)
		}
		if got := w.one(t, copies); got != "150 of 150" {
			t.Errorf("executions were deleted here, and there are %s there", got)
		}
	}
	w.expires, w.expired, w.parts = false, engine.Time{}, there
	// A claim that was lost, and one that is lost before the end of the transaction, write nothing.
	w.parts = map[string]int{"a": 120, "f": 9}
	w.damaged, w.lost = "", ""
	w.counted = 5
	if _, err := w.take(t, 2); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an older claim: %v", err)
	}
	// A control store that was made anew gives lower ones: they are raised, and the claim is tried again.
	w.counted = 2
	if _, err := w.take(t, 2); !engine.HasCode(err, engine.CodeUnavailable) || w.counted < 5 {
		t.Errorf("a claim of a new control store: %v, which counts from %d", err, w.counted)
	}
	w.proof = store.ErrClaimLost
	if _, err := w.take(t, 6); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("a claim that is lost in the middle: %v", err)
	}
	if got := w.one(t, copies); got != "150 of 150" {
		t.Errorf("a stale worker: %s", got)
	}
	w.proof, w.gone = nil, true
	if r, err := w.take(t, 7); err != nil || !r.Gone {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.one(t, `SELECT (SELECT COUNT(*) FROM QUERY_EXECUTIONS) +
		(SELECT COUNT(*) FROM LOADSTONE_PARTS)`); got != "0" {
		t.Errorf("%s rows of a deleted run", got)
	}
}

// TestAKillAtAnyStepLeavesOneCopyInTheAccount: whatever step a worker ends at, before or after it was done, what
// readers see are whole parts, and who comes next leaves one copy.
func TestAKillAtAnyStepLeavesOneCopyInTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	epoch := int64(0)
	for _, w.after = range []bool{false, true} {
		for failAt := 1; ; failAt += 1 + failAt/16 { // the later ones are of tables that are alike
			w.gone, w.failAt = true, 0
			epoch++
			if _, err := w.take(t, epoch); err != nil {
				t.Fatal(err)
			}
			w.gone = false
			w.restart()
			w.steps, w.failAt = 0, failAt
			epoch++
			_, err := w.take(t, epoch)
			if err == nil {
				if failAt < 15 {
					t.Fatalf("there were only %d steps", failAt)
				}
				break
			}
			if !errors.Is(err, errFault) {
				t.Fatal(err)
			}
			switch got := w.one(t, copies); got {
			case "0 of 0", "100 of 100", "50 of 50", "150 of 150":
			default:
				t.Errorf("ended at step %d (%v): readers see %s", failAt, w.after, got)
			}
			w.failAt = 0
			epoch++
			if _, err := w.take(t, epoch); err != nil {
				t.Fatal(err)
			}
			if got := w.one(t, copies); got != "150 of 150" {
				t.Errorf("ended at step %d (%v): there are %s", failAt, w.after, got)
			}
			if got := w.one(t, known); got != "2 1 1 1" {
				t.Errorf("ended at step %d (%v): rows of what is known of the run: %s", failAt, w.after, got)
			}
		}
	}
}

// whole is a run with two polls of its warehouse, of which the second came late.
func (w *world) whole() {
	at := func(seconds int) string {
		return fmt.Sprintf(
			`{"run_id":"r","snapshot_id":"%[1]d","timestamp":%[2]q,"elapsed_seconds":%[1]d,"warehouse_name":"WH",
			"state":"STARTED","warehouse_size":"X-Small","started_clusters":%[1]d,"queued":%[3]d,"raw_result":{"name":"WH"}}`,
			seconds,
			noon.Add(time.Duration(seconds)*time.Second).Format(time.RFC3339Nano),
			9-seconds,
		)
	}
	w.polls = []string{at(1), at(4), at(7)}
}

// TestViewsShowWholeRuns: what the views over a run say is what was recorded.
func TestViewsShowWholeRuns(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	w.whole()
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	s := w.book
	if s.Failed || s.Place != "LOADSTONE.PUBLIC" || s.Executions != 150 || len(s.Views) != 6 || s.Problem != "" {
		t.Errorf("the book says %+v", s)
	}
	for _, c := range []struct{ sql, want string }{
		{`SELECT RUN_NAME || ' ' || OPERATIONS || ' ' || ERRORS || ' ' || P50_MS || ' ' || MAX_MS FROM V_RUN_SUMMARY`,
			// 95 of a and 45 of b, each from 5.125 on; every tenth failed, of which the first was in the warm-up.
			"nightly 140 13 39.625 99.125"},
		{"SELECT COUNT(*) || ' ' || SUM(OPERATIONS) || ' ' || MIN(SECOND) || ' ' || MAX(SECOND) FROM V_RUN_TIMESERIES",
			"2 150 0 0"},
		{"SELECT QUERY_KIND || ' ' || OPERATIONS || ' ' || ROW_COUNT FROM V_KIND_STATS", "POINT_LOOKUP 140 280"},
		{"SELECT STATEMENT_ID || ' ' || OPERATIONS || ' ' || IN_TRANSACTION FROM V_STATEMENT_STATS", "get 140 false"},
		{"SELECT ERROR_CLASS || ' ' || ERRORS FROM V_ERROR_STATS", "timeout 13"},
		{`SELECT COUNT(*) || ' ' || MAX(SECOND) || ' ' || SUM(POLLS) || ' ' || MAX(QUEUED) || ' ' || MAX(STARTED_CLUSTERS) ||
			' ' || MAX(QPS) FROM V_WAREHOUSE_TIMESERIES`, "2 5 3 8 7 150.000000"},
	} {
		if got := w.one(t, c.sql); got != c.want {
			t.Errorf("%s\ngives %q, not %q", c.sql, got, c.want)
		}
	}
	// Only whole runs are shown, and none that is gone: a part that cannot be read any more is changed, and not taken in.
	w.parts["a"], w.damaged = 96, "a"
	if r, err := w.take(t, 2); err != nil || !strings.Contains(r.Note, "views do not show the run") {
		t.Fatal(r, err)
	}
	if got := w.one(t, "SELECT COUNT(*) FROM V_RUN_SUMMARY"); got != "0" {
		t.Errorf("%s rows of a run of which a part cannot be read", got)
	}
	w.damaged = ""
	if _, err := w.take(t, 3); err != nil {
		t.Fatal(err)
	}
	if got := w.one(t, "SELECT COUNT(*) FROM V_RUN_SUMMARY"); got != "1" {
		t.Errorf("%s rows of a run that can be read again", got)
	}
	w.gone = true
	if _, err := w.take(t, 4); err != nil || !w.book.Gone {
		t.Fatal(w.book, err)
	}
	if got := w.one(t, `SELECT (SELECT COUNT(*) FROM V_RUN_SUMMARY) +
		(SELECT COUNT(*) FROM V_WAREHOUSE_TIMESERIES)`); got != "0" {
		t.Errorf("%s rows of a deleted run", got)
	}
}

// TestAnAccountThatMakesNoViews: applying the schema without the right names what is missing and the cure; runs are
// taken in all the same, and the book says which views are not there.
func TestAnAccountThatMakesNoViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, translate.Denied{Privilege: "CREATE VIEW"})
	refused := w.apply(t)
	for _, part := range []string{"V_RUN_SUMMARY: The account says: ", "Insufficient privileges",
		"Cure: GRANT CREATE VIEW ON SCHEMA LOADSTONE.PUBLIC TO ROLE SYSADMIN"} {
		if !strings.Contains(refused, part) {
			t.Errorf("%q is not in %q", part, refused)
		}
	}
	r, err := w.take(t, 1)
	if err != nil || r.Rows != 150 || w.book.Failed || !w.book.Whole || w.book.Executions != 150 ||
		len(w.book.Views) != 0 {
		t.Fatalf("%+v, %+v, %v", r, w.book, err)
	}
	for _, part := range []string{"does not have V_RUN_SUMMARY, V_RUN_TIMESERIES,",
		"Cure: loadstone schema apply --snowflake lake."} {
		if !strings.Contains(w.book.Problem, part) || !strings.Contains(r.Note, part) {
			t.Errorf("%q is not in %q", part, w.book.Problem)
		}
	}
}

// TestNothingIsMadeAtRunTime: an account without the schema gets no table from a run; the attempt says what is missing
// and the command, is tried again, and succeeds when the schema is there.
func TestNothingIsMadeAtRunTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES"
	before := w.one(t, objects)
	_, err := w.take(t, 1)
	for _, part := range []string{"QUERY_EXECUTIONS", "loadstone schema apply --snowflake lake"} {
		if !strings.Contains(engine.ErrorText(err), part) || !w.book.Failed || !strings.Contains(w.book.Problem, part) {
			t.Errorf("%q is not in %q, or not in %+v", part, engine.ErrorText(err), w.book)
		}
	}
	if !store.IsTransient(err) || w.one(t, objects) != before {
		t.Errorf("%v, and there are %s objects, not %s", err, w.one(t, objects), before)
	}
	if _, err := snowflakeexport.ReadRun(
		t.Context(),
		w.Account,
		"loadstone schema apply",
		"r",
		nil,
	); !strings.Contains(
		engine.ErrorText(err),
		"loadstone schema apply",
	) {
		t.Errorf("reading from an account without the schema: %v", err)
	}
	w.apply(t)
	w.restart()
	w.segment = 1_500_000 // in several rows
	if r, err := w.take(t, 2); err != nil || r.Rows != 150 || w.book.Problem != "" {
		t.Errorf("%+v, %+v, %v", r, w.book, err)
	}
	if got := w.one(t, `SELECT TEST_ID || WORKER_ID || WORKER_GROUP_ID FROM TEST_RESULTS WHERE TEST_ID <> RUN_ID`); got !=
		"w0worker-00" {
		t.Errorf("the row of a run worker: %s", got)
	}
	if got := w.one(
		t,
		`SELECT STEP_START_TIME::VARCHAR || TARGET_WORKERS || QUEUE_DETECTED FROM FIND_MAX_STEP_HISTORY`,
	); got !=
		"2026-11-22 12:00:00.5005true" {
		t.Errorf("a step: %s", got)
	}
	// Read back, the rows are what the control store gave.
	var results []string
	if segment, err := snowflakeexport.ReadRun(t.Context(), w.Account, "loadstone schema apply --snowflake lake", "r",
		func(table string, row map[string]json.RawMessage) error {
			if table == "test_results" {
				results = append(results, string(row["test_id"])+string(row["figures"])+string(row["app_p95_ms"]))
			}
			return nil
		}); err != nil || len(segment) != w.segment || strings.Join(results, " ") != `"r"{"a":0.1}7.5 "w0"` {
		t.Errorf("read back: %q, %v", results, err)
	}
	if _, err := snowflakeexport.ReadRun(
		t.Context(),
		w.Account,
		"loadstone schema apply --snowflake lake",
		"other",
		nil,
	); !engine.HasCode(
		err,
		engine.CodeNotFound,
	) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// TestWhatTheHistorySaysIsBesideExecutions: enrichment that comes after a run was taken in has its parts sent again, with
// the columns filled where the history knows of the execution, and NULL elsewhere.
func TestWhatTheHistorySaysIsBesideExecutions(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	const columns = `SELECT COUNT(*) || ' ' || COUNT(SERVER_MS) || ' ' || COUNT(TEST_ID) || ' ' ||
		COALESCE(MAX(SERVER_MS) || ' ' || MAX(QUEUED_MS) || ' ' || MAX(OVERHEAD_MS) || ' ' || MAX(CLUSTER_NUMBER) || ' ' ||
		MAX(EXECUTION_STATUS), '') FROM QUERY_EXECUTIONS`
	id, err := engine.ParseQueryID(queryID)
	if err != nil {
		t.Fatal(err)
	}
	for epoch, want := range []string{"150 0 150 ", "150 75 150 12 5 0.25 3 SUCCESS", "150 75 150 12 5 0.25 3 SUCCESS"} {
		if epoch == 1 {
			w.enriched = []engine.EnrichedExecution{{QueryID: id, ServerMs: 12, QueuedOverloadMs: 2, QueuedRepairMs: 3,
				OverheadMs: 0.25, Cluster: 3, Status: "SUCCESS"}}
		}
		r, err := w.take(t, int64(epoch+1))
		if got := w.one(t, columns); err != nil || got != want || r.Unchanged != (epoch == 2) {
			t.Errorf("take %d: %+v, %v, %q and not %q", epoch, r, err, got, want)
		}
	}
}

// TestARunIsThereWithItsSegment: until the segment is made the run's executions are there, and the run is not shown, is
// owed and tried again, also where an older segment is there. A segment that is lost here stays there.
func TestARunIsThereWithItsSegment(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	const there = `SELECT (SELECT COUNT(*) FROM V_RUN_SUMMARY) || ' ' || (SELECT COUNT(*) FROM LOADSTONE_SEGMENTS)`
	take := func(epoch int64, whole bool, want string) {
		t.Helper()
		_, err := w.take(t, epoch)
		if waits := engine.HasCode(err, engine.CodeUnavailable) &&
			store.IsTransient(err); waits == whole ||
			err != nil && whole {
			t.Errorf("epoch %d: %v", epoch, err)
		}
		if got := w.one(t, there); got != want || w.book.Whole != whole || w.book.Failed || w.book.Executions != 150 ||
			(w.book.Problem == "") != whole {
			t.Errorf("epoch %d: %s, and not %s: %+v", epoch, got, want, w.book)
		}
	}
	w.pending = true
	take(1, false, "0 0")
	w.pending, w.segment = false, 700_000
	take(2, true, "1 2")
	w.pending, w.polls = true, nil
	take(3, false, "1 2")
	w.pending, w.segment = false, 1_300_000
	take(4, true, "1 3")
	w.segment = 0
	take(5, true, "1 3")
	w.gone = true
	if _, err := w.take(t, 6); err != nil || w.one(t, there) != "0 0" {
		t.Errorf("the run is gone: %v, %s", err, w.one(t, there))
	}
}

// TestALongRunIsReadBack: its segment, and a line of its log, are each more than a result may be.
func TestALongRunIsReadBack(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	w.segment, w.logs, w.logSize = 6_600_000, 1, target.MaxResult*5/8
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	lines := 0
	segment, err := snowflakeexport.ReadRun(t.Context(), w.Account, "lake", "r",
		func(table string, row map[string]json.RawMessage) error {
			if table == "test_logs" && len(row["message"]) == w.logSize+2 && len(row["details"]) == w.logSize+11 {
				lines++
			}
			return nil
		})
	if err != nil || lines != 1 || len(segment) != w.segment {
		t.Errorf("%d bytes and %d lines, %v", len(segment), lines, err)
	}
}

// TestApplyLeavesWhatIsOthers: what somebody else has made keeps its name and content; a view of an earlier version is
// made anew, one of a later version is left; applying twice changes nothing.
func TestApplyLeavesWhatIsOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	do := func(sql ...string) {
		t.Helper()
		if err := w.Account.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TABLE V_KIND_STATS (X INT)", "CREATE VIEW V_ERROR_STATS AS SELECT 1 AS X",
		"CREATE VIEW V_RUN_SUMMARY COMMENT = 'Loadstone view 0: older' AS SELECT 1 AS X",
		"CREATE VIEW V_RUN_TIMESERIES COMMENT = 'Loadstone view 999: newer' AS SELECT 1 AS X",
		"CREATE TABLE TEST_LOGS (X INT) COMMENT = 'Loadstone table 999: newer'", "INSERT INTO TEST_LOGS VALUES (7)")
	refused := w.apply(t)
	if again := w.apply(t); again != refused || strings.Count(refused, "\n") != 2 {
		t.Errorf("refused: %q, and again %q", refused, again)
	}
	for _, part := range []string{"V_KIND_STATS: It already exists as TABLE",
		"V_ERROR_STATS: A view of that name is there that Loadstone has not made"} {
		if !strings.Contains(refused, part) {
			t.Errorf("%q is not in %q", part, refused)
		}
	}
	for sql, want := range map[string]string{"SELECT X FROM V_ERROR_STATS": "1", "SELECT X FROM V_RUN_TIMESERIES": "1",
		"SELECT COUNT(*) FROM V_RUN_SUMMARY": "0", "SELECT X FROM TEST_LOGS": "7"} {
		if got := w.one(t, sql); got != want {
			t.Errorf("%s gives %s, not %s", sql, got, want)
		}
	}
	done, err := snowflakeexport.ApplySchema(t.Context(), w.Account)
	for _, d := range done {
		if d.Refused == "" && d.Done != "current" && !strings.Contains(d.Done, "newer") {
			t.Errorf("the third time %s was %s", d.Name, d.Done)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestTablesOfOthersAreLeft: a table of somebody else's under one of the names is neither written to nor changed, is
// named with the cure, and the rest is taken in; when it is gone and the schema applied, what was left out follows.
func TestTablesOfOthersAreLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, make, row string
		views           int
		problem         []string
	}{
		{"TEST_RESULTS", "CREATE TABLE TEST_RESULTS (RUN_ID VARCHAR, SCORE INT)",
			"INSERT INTO TEST_RESULTS VALUES ('r', 7)", 0,
			[]string{"Not written to: TEST_RESULTS: A table of that name is there that Loadstone has not made",
				"it has no column ADAPTER", "Cure: rename or drop it"}},
		{"WAREHOUSE_POLL_SNAPSHOTS", "CREATE TABLE WAREHOUSE_POLL_SNAPSHOTS COMMENT = 'ours' AS SELECT 'r' AS RUN_ID", "", 5,
			[]string{"WAREHOUSE_POLL_SNAPSHOTS: A table of that name"}},
		{"RUN_STATUS", "CREATE TABLE RUN_STATUS (RUN_ID VARCHAR NOT NULL)", "INSERT INTO RUN_STATUS VALUES ('r')", 6,
			[]string{"RUN_STATUS: A table of that name"}},
		{"TEST_RESULTS", "CREATE VIEW TEST_RESULTS AS SELECT 'r' AS RUN_ID", "", 0,
			[]string{"TEST_RESULTS: It is not a plain table but a view"}},
	} {
		w := newWorld(t)
		w.whole()
		do := func(sql ...string) {
			t.Helper()
			if err := w.Account.Exec(t.Context(), sql...); err != nil {
				t.Fatal(err)
			}
		}
		do(c.make)
		if c.row != "" {
			do(c.row)
		}
		w.apply(t)
		seen := func() string {
			t.Helper()
			return w.one(t, "SELECT COUNT(*) FROM "+c.name) + w.one(t,
				"SELECT TABLE_TYPE || COALESCE(COMMENT, '') FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = '"+c.name+"'")
		}
		before := seen()
		for epoch := int64(1); epoch < 3; epoch++ {
			w.restart()
			r, err := w.take(t, epoch)
			if err != nil || w.book.Failed || w.book.Whole || w.book.Executions != 150 || len(w.book.Views) != c.views {
				t.Fatalf("%s: %+v, %+v, %v", c.make, r, w.book, err)
			}
			for _, part := range c.problem {
				if !strings.Contains(w.book.Problem, part) || !strings.Contains(r.Note, part) {
					t.Errorf("%q is not in %q", part, w.book.Problem)
				}
			}
		}
		if got := w.one(t, copies); got != "150 of 150" || seen() != before {
			t.Errorf("%s: %s executions, and what was %s is %s", c.make, got, before, seen())
		}
		kind := "TABLE "
		if strings.HasPrefix(c.make, "CREATE VIEW") {
			kind = "VIEW "
		}
		do("DROP " + kind + c.name)
		if refused := w.apply(t); refused != "" {
			t.Error(refused)
		}
		w.restart()
		if r, err := w.take(t, 3); err != nil || r.Unchanged || !w.book.Whole || w.book.Problem != "" ||
			len(w.book.Views) != 6 {
			t.Errorf("%s is gone: %+v, %+v, %v", c.name, r, w.book, err)
		}
		if got := w.one(t, `SELECT (SELECT COUNT(*) FROM TEST_RESULTS) || ' ' ||
			(SELECT COUNT(*) FROM WAREHOUSE_POLL_SNAPSHOTS) || ' ' || (SELECT COUNT(*) FROM V_RUN_SUMMARY)`); got != "2 3 1" {
			t.Errorf("%s is gone: results, polls and shown are %s", c.name, got)
		}
		w.gone = true
		if _, err := w.take(t, 4); err != nil || w.one(t, known) != "0 0 0 1" {
			t.Errorf("the run is gone: %v, %s", err, w.one(t, known))
		}
	}
}

// TestWithoutTheTableOfExecutionsNothingIsTaken: it is somebody else's, the attempt fails with its name and the cure,
// and nothing is written.
func TestWithoutTheTableOfExecutionsNothingIsTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"QUERY_EXECUTIONS", "LOADSTONE_PARTS", "LOADSTONE_RUNS"} {
		w := newWorld(t)
		if err := w.Account.Exec(t.Context(), "CREATE TABLE "+name+" (RUN_ID VARCHAR NOT NULL, MINE INT)"); err != nil {
			t.Fatal(err)
		}
		w.apply(t)
		_, err := w.take(t, 1)
		for _, part := range []string{name, "has not made", "Cure: rename or drop it"} {
			if !strings.Contains(engine.ErrorText(err), part) || !w.book.Failed || !strings.Contains(w.book.Problem, part) {
				t.Errorf("%q is not in %q, or not in %+v", part, engine.ErrorText(err), w.book)
			}
		}
		if got := w.one(t, "SELECT COUNT(*) FROM "+name); got != "0" {
			t.Errorf("%s rows in %s", got, name)
		}
	}
}

// TestTimesThatAnAccountReadsOtherwiseAreNotKept: an account that does as if it had not been told of logical types.
func TestTimesThatAnAccountReadsOtherwiseAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	w.as = func(sql string) string { return strings.Replace(sql, " USE_LOGICAL_TYPE = TRUE", "", 1) }
	_, err := w.take(t, 1)
	if text := engine.ErrorText(err); !engine.HasCode(err, engine.CodeTarget) || !w.book.Failed ||
		!strings.Contains(text, "other times than were recorded") || !strings.Contains(text, "2026-11-22T12:00:00.123456Z") {
		t.Errorf("%v, %+v", err, w.book)
	}
	if got := w.one(t, "SELECT COUNT(*) FROM QUERY_EXECUTIONS"); got != "0" {
		t.Errorf("%s executions were kept", got)
	}
	w.as = nil
	if _, err := w.take(t, 2); err != nil || w.book.Failed {
		t.Errorf("%v, %+v", err, w.book)
	}
}
