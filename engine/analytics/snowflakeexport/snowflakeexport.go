// Package snowflakeexport takes the single executions of finished runs into a Snowflake account: each part of the
// record as Parquet files on a stage, and from there with COPY INTO the table QUERY_EXECUTIONS.
//
// A part is known by its run and its SHA-256. Its rows come with the line in LOADSTONE_PARTS that says so, in one
// transaction, so that a part that was taken in is not taken in again, and one that was taken in by half is not there.
// Who comes with a higher epoch of the claim writes it into LOADSTONE_RUNS; every transaction holds that row, and
// one of a lower epoch changes nothing.
//
// What the control store knows of the run follows, in tables of the same names and columns, and views show runs that
// are there as a whole. The tables and views are those of sql/schema/snowflake; ApplySchema makes them, no export.
// Each has a comment that begins with a mark and the version of the schema. What lacks it is somebody else's: it is not
// written to, changed or dropped.
package snowflakeexport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Table is the derived table of kind INGEST that says what of it is there.
const Table = "exported_executions"

// maxRowsPerFile are in one file on the stage: some 30 MB.
const maxRowsPerFile = 500_000

// Store is what is known of runs.
type Store interface {
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	// RunRows calls each with the rows that belong to a run in one of RunTables, named in lower case, without secrets and
	// sampled rows.
	RunRows(ctx context.Context, runID, table string, each func(map[string]json.RawMessage) error) error
}

// Record reads the parts of runs.
type Record interface {
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
	ReadExecutions(ctx context.Context, runID, name string, fn func(*rollup.Executions) error) error
	// Enriched calls fn for each execution that the account's history knew of.
	Enriched(ctx context.Context, runID string, fn func(*engine.EnrichedExecution) error) (last int, err error)
	// LatestSegmentContent is the newest segment of a run; one that has none yet is store.ErrNotFound.
	LatestSegmentContent(ctx context.Context, runID string) ([]byte, error)
}

// Account is a database that takes files in through a stage.
type Account interface {
	SQLAccount
	target.Stager
}

// ExportStatus is what of a run is in the account, as far as its last attempt came.
type ExportStatus struct {
	// Place is the schema in which it is.
	Place      string
	Executions int64
	Views      []string
	// Problem says in sentences what is missing, and why; Failed that the attempt came to nothing.
	Problem string
	// Whole: nothing is owed, what is known of the run besides is there, too, or was left out because parts are damaged.
	Whole  bool
	Failed bool
	Gone   bool
}

// StatusStore is where readers find what is in the account. A note of a lower epoch than that of the last one is
// refused.
type StatusStore interface {
	NoteExport(ctx context.Context, c refresh.Claim, s ExportStatus) error
}

// Export takes runs out.
type Export struct {
	Store  Store
	Record Record
	Detail func(ctx context.Context, runID string) (engine.RunDetail, error)
	// Account is asked for each run: it may have been changed. Cure is the command that applies the schema there.
	Account Account
	Cure    string
	// IngestPending tells whether the segment of a run is still to be made: then the run is taken out as a whole later.
	IngestPending func(ctx context.Context, runID string) (bool, error)
	// StatusStore may be nil.
	StatusStore StatusStore
	// RaiseEpochs has later claims get epochs above one that the account has seen, and reports whether they were not above
	// it before: a control store that was made anew or restored counts from less, and what it claims would write nothing.
	RaiseEpochs func(ctx context.Context, above int64) (raised bool, err error)

	prepared atomic.Bool
	schema   SchemaStatus
	history  history
	segment  []byte
}

// errIngestPending is of a run whose executions are there, and whose kinds and statements follow.
var errIngestPending = &engine.Error{Code: engine.CodeUnavailable,
	Message: "The figures by kind and statement of the run are still being made.",
	Hint:    "The rest of the run follows when they are there: the table runs says what it waits for."}

// row is an execution as it is in a file; columns are found by their names.
type row struct {
	RunID         string  `parquet:"RUN_ID,dict"`
	Part          string  `parquet:"PART,dict"`
	Seq           int64   `parquet:"SEQ"`
	DueAt         int64   `parquet:"DUE_AT,timestamp(microsecond)"`
	StartedAt     int64   `parquet:"STARTED_AT,timestamp(microsecond)"`
	ElapsedMs     float64 `parquet:"APP_ELAPSED_MS"`
	LagMs         float64 `parquet:"SCHEDULE_LAG_MS"`
	WaitMs        float64 `parquet:"POOL_WAIT_MS"`
	DecodeNs      int64   `parquet:"DECODE_NS"`
	Connection    int64   `parquet:"CONNECTION_ID"`
	Step          int32   `parquet:"STEP"`
	Rows          int64   `parquet:"ROW_COUNT"`
	Retries       int32   `parquet:"RETRIES"`
	Position      int32   `parquet:"STATEMENT_POSITION"`
	Warmup        bool    `parquet:"WARMUP"`
	Success       bool    `parquet:"SUCCESS"`
	RolledBack    bool    `parquet:"ROLLED_BACK"`
	Worker        string  `parquet:"WORKER_ID,dict"`
	Kind          string  `parquet:"QUERY_KIND,dict"`
	Statement     string  `parquet:"STATEMENT_ID,dict"`
	ErrorClass    *string `parquet:"ERROR_CLASS,optional,dict"`
	ErrorCode     *string `parquet:"ERROR_CODE,optional,dict"`
	ErrorMessage  *string `parquet:"ERROR_MESSAGE,optional,dict"`
	ServerQueryID *string `parquet:"SERVER_QUERY_ID,optional"`
	ResultID      string  `parquet:"TEST_ID,dict"`
	historyRow
}

// Run takes out the run of a claim, or removes it from the account when it is gone, and notes what came of it.
func (e *Export) Run(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
	r, err := e.run(ctx, c, prove)
	if gone, ok := errors.AsType[executions.DeletedError](err); ok {
		r, err = refresh.Result{Mode: refresh.Incremental, Unchanged: true,
			Note: gone.Sentence + " What was taken there before stays."}, nil
	}
	err = e.userError(err)
	if e.StatusStore == nil || ctx.Err() != nil || errors.Is(err, store.ErrClaimLost) {
		return r, err
	}
	s := ExportStatus{Gone: r.Gone, Problem: r.Note, Views: e.schema.Views, Whole: e.schema.tablesUsable()}
	waits := errors.Is(err, errIngestPending)
	if waits {
		s.Problem, s.Whole = engine.ErrorText(err), false
	}
	if (err == nil || waits) && !s.Gone {
		err = errors.Join(err, e.userError(e.count(ctx, c.Subtask, &s)))
	}
	if err != nil && !waits {
		s.Failed, s.Problem = true, engine.ErrorText(err)
	}
	return r, errors.Join(err, e.StatusStore.NoteExport(ctx, c, s))
}

// userError is an error of the account in words for people. One that is away is no fault of the run, which is tried
// again until it is there.
func (e *Export) userError(err error) error {
	var worded *engine.Error
	if err == nil || errors.As(err, &worded) || store.IsTransient(err) || errors.Is(err, store.ErrClaimLost) {
		return err
	}
	said := e.Account.Classify(err)
	switch {
	case said.Class == engine.ErrClassConnection || said.Class == engine.ErrClassThrottled:
		return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
			Message: "The results connection cannot be reached: " + Sentence(said.Message)}
	case said.Class == engine.ErrClassResource || said.Class == engine.ErrClassTimeout:
		return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
			Message: "The warehouse of the results connection executes nothing now: " + Sentence(said.Message),
			Hint: "It is tried again. SHOW WAREHOUSES says whether the warehouse runs, and SHOW RESOURCE MONITORS whether its " +
				"credits are used up."}
	case said.Class == engine.ErrClassLock:
		return &engine.Error{
			Code:    engine.CodeUnavailable,
			Cause:   err,
			Message: "Another transaction of the account holds what is to be written: " + Sentence(said.Message),
			Hint: "It is tried again. An account ends a transaction that nobody uses after five minutes; " +
				"SHOW LOCKS IN ACCOUNT shows whose it is.",
		}
	case said.Class == engine.ErrClassCancelled && said.Code == codeCancelled:
		return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
			Message: "Somebody has ended a statement of the export: " + Sentence(said.Message),
			Hint:    "It is tried again, by whoever has the run now."}
	case said.Code != "":
		return &engine.Error{Code: engine.CodeTarget, Cause: err,
			Message: "The account of the results connection says: " + Sentence(said.Message)}
	}
	return err
}

// count reads where the run is, and how much of it.
func (e *Export) count(ctx context.Context, runID string, s *ExportStatus) error {
	rs, err := e.Account.Query(ctx, `SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), COALESCE(SUM(ROW_COUNT), 0)
		FROM LOADSTONE_PARTS WHERE RUN_ID = ?`, runID)
	if err != nil {
		return fmt.Errorf("counting what is there of run %s: %w", runID, err)
	}
	s.Place = Quoted(rs.Rows[0][0]) + "." + Quoted(rs.Rows[0][1])
	s.Executions, err = number(rs.Rows[0][2])
	return err
}

func (e *Export) run(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (r refresh.Result,
	err error) {
	if err := e.begin(ctx, c); err != nil {
		return r, err
	}
	detail, err := e.Detail(ctx, c.Subtask)
	if errors.Is(err, store.ErrNotFound) || engine.HasCode(err, engine.CodeNotFound) {
		return refresh.Result{Gone: true, Note: "The run was deleted."}, e.drop(ctx, c, prove)
	}
	if err != nil {
		return r, fmt.Errorf("reading run %s: %w", c.Subtask, err)
	}
	if gone := executions.DeletedNotice(detail.Run); gone != "" {
		return r, executions.DeletedError{Sentence: gone}
	}
	prove = executions.WithDeletionCheck(prove, c.Subtask, e.Detail)
	artifacts, err := e.Store.Artifacts(ctx, c.Subtask)
	if err != nil {
		return r, fmt.Errorf("listing the parts of run %s: %w", c.Subtask, err)
	}
	known, err := e.exportedParts(ctx, c.Subtask)
	if err != nil {
		return r, err
	}
	r.Mode, r.Unchanged = refresh.Incremental, true
	problems, total, err := e.sendParts(ctx, c, &r, artifacts, known, detail.StartTime.UnixNano(), prove)
	if err != nil {
		return r, err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := e.forget(ctx, c, name, prove); err != nil {
			return r, err
		}
		r.Unchanged = false
	}
	write := e.writeFacts
	if len(problems) > 0 {
		write = e.deleteFacts
		r.Note = fmt.Sprintf("%d of %d parts could not be read, and views do not show the run: %s", len(problems), total,
			strings.Join(problems, " "))
	}
	changed, err := write(ctx, c, detail, prove)
	if err != nil {
		return r, err
	}
	r.Unchanged = r.Unchanged && !changed
	r.Note = strings.Join(slices.DeleteFunc([]string{r.Note, e.schema.Problem},
		func(text string) bool { return text == "" }), " ")
	return r, nil
}

// sendParts takes out those parts that are not there as they are, and removes all from known. total is how many there
// are, problems say which cannot be read.
func (e *Export) sendParts(ctx context.Context, c refresh.Claim, r *refresh.Result, artifacts []engine.Artifact,
	known map[string]string, startNs int64, prove func(context.Context) error) (problems []string, total int, _ error) {
	e.history = historyOf(artifacts)
	var send, there []engine.Artifact
	for _, a := range artifacts {
		if a.Kind != record.KindExecutions {
			continue
		}
		total++
		if known[a.Name] == e.history.version(a) {
			there = append(there, a)
		} else {
			send = append(send, a)
		}
		delete(known, a.Name)
	}
	for _, group := range groups(send) {
		if err := e.history.read(ctx, e.Record, c.Subtask, group); err != nil {
			return nil, 0, err
		}
		for _, a := range group {
			rows, size, problem, err := e.part(ctx, c, a, startNs, prove)
			if err != nil {
				return nil, 0, err
			}
			if problem != "" {
				problems = append(problems, problem)
				continue
			}
			r.Rows, r.Bytes, r.Unchanged = r.Rows+rows, r.Bytes+size, false
		}
	}
	e.history.rows = nil
	filled, err := e.fillResultIDs(ctx, c, there, prove)
	r.Unchanged = r.Unchanged && !filled
	return problems, total, err
}

// fillResultIDs gives executions that an earlier version has taken there the id of their run worker's results, by which
// they are joined with them.
func (e *Export) fillResultIDs(ctx context.Context, c refresh.Claim, parts []engine.Artifact,
	prove func(context.Context) error) (filled bool, _ error) {
	if len(parts) == 0 {
		return false, nil
	}
	rs, err := e.Account.Query(ctx, "SELECT DISTINCT PART FROM "+Executions+" WHERE RUN_ID = ? AND TEST_ID IS NULL",
		c.Subtask)
	if err != nil {
		return false, fmt.Errorf("looking which executions have no results: %w", err)
	}
	for _, row := range rs.Rows {
		at := slices.IndexFunc(parts, func(a engine.Artifact) bool { return a.Name == fmt.Sprint(row[0]) })
		if at < 0 || parts[at].ResultID == "" {
			continue
		}
		filled = true
		if err := e.together(ctx, c, prove, func(t target.Tx) error {
			return t.Exec(ctx, "UPDATE "+Executions+" SET TEST_ID = ? WHERE RUN_ID = ? AND PART = ? AND TEST_ID IS NULL",
				parts[at].ResultID, c.Subtask, parts[at].Name)
		}); err != nil {
			return filled, fmt.Errorf("giving executions of run %s their results: %w", c.Subtask, err)
		}
	}
	return filled, nil
}

// begin looks whether the schema is there, and notes the epoch of a claim: lower ones write nothing from now on.
func (e *Export) begin(ctx context.Context, c refresh.Claim) error {
	if !e.prepared.Load() {
		var err error
		if e.schema, err = CheckSchema(ctx, e.Account, e.Cure); err != nil {
			return err
		}
		e.prepared.Store(true)
	}
	if err := e.endEarlier(ctx, c); err != nil {
		return err
	}
	seen := int64(noEpoch)
	err := e.Account.InTransaction(ctx, transactionName(c), func(t target.Tx) error {
		epoch, err := epochOf(ctx, t, c.Subtask)
		seen = epoch
		switch {
		case err != nil:
			return err
		case epoch > c.Epoch:
			return claimLost(c)
		case epoch == noEpoch:
			return t.Exec(ctx, "INSERT INTO LOADSTONE_RUNS (RUN_ID, EPOCH) VALUES (?, ?)", c.Subtask, c.Epoch)
		}
		return t.Exec(ctx, "UPDATE LOADSTONE_RUNS SET EPOCH = ? WHERE RUN_ID = ? AND EPOCH < ?", c.Epoch, c.Subtask, c.Epoch)
	})
	if err == nil {
		return e.removeEarlier(ctx, c)
	}
	if !errors.Is(err, store.ErrClaimLost) {
		return err
	}
	switch raised, raising := e.RaiseEpochs(ctx, seen); {
	case raising != nil:
		return raising
	case raised:
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf(
			"The account has seen epoch %d of this run, and the control store, made anew or restored, was not so far.", seen),
			Hint: "its epochs are above that now, and the run is taken to the account when it is claimed again"}
	}
	return err
}

func claimLost(c refresh.Claim) error {
	return fmt.Errorf("writing %s %s at epoch %d: %w", c.Table, c.Subtask, c.Epoch, store.ErrClaimLost)
}

// noEpoch is that of a run with which nobody has begun. Epochs below 0 are of servers that copy it while it goes on.
const noEpoch = math.MinInt64

// epochOf is the highest epoch that has begun with a run, noEpoch before the first.
func epochOf(ctx context.Context, t target.Tx, runID string) (int64, error) {
	rs, err := t.Query(ctx, "SELECT MAX(EPOCH) FROM LOADSTONE_RUNS WHERE RUN_ID = ?", runID)
	if err != nil {
		return 0, err
	}
	if len(rs.Rows) == 0 || rs.Rows[0][0] == nil {
		return noEpoch, nil
	}
	return number(rs.Rows[0][0])
}

func number(v any) (int64, error) {
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return 0, fmt.Errorf("the account answers %q for a number: %w", fmt.Sprint(v), err)
	}
	return int64(n), nil
}

// together runs f in a transaction that holds the run for the claim's epoch; prove is called before its end.
func (e *Export) together(ctx context.Context, c refresh.Claim, prove func(context.Context) error,
	f func(target.Tx) error) error {
	return e.Account.InTransaction(ctx, transactionName(c), func(t target.Tx) error {
		err := hold(ctx, t, c)
		if err == nil {
			err = f(t)
		}
		if err == nil && prove != nil {
			err = prove(ctx)
		}
		return err
	})
}

// hold has a transaction hold the run until its end, for the claim's epoch alone.
func hold(ctx context.Context, t target.Tx, c refresh.Claim) error {
	// The change of nothing locks the row.
	if err := t.Exec(ctx, "UPDATE LOADSTONE_RUNS SET EPOCH = EPOCH WHERE RUN_ID = ?", c.Subtask); err != nil {
		return err
	}
	epoch, err := epochOf(ctx, t, c.Subtask)
	if err == nil && epoch != c.Epoch {
		err = claimLost(c)
	}
	return err
}

// exportedParts are the parts that are there of a run, with their checksums.
func (e *Export) exportedParts(ctx context.Context, runID string) (map[string]string, error) {
	rs, err := e.Account.Query(ctx, "SELECT PART, SHA256 FROM LOADSTONE_PARTS WHERE RUN_ID = ?", runID)
	if err != nil {
		return nil, fmt.Errorf("looking which parts are there: %w", err)
	}
	known := map[string]string{}
	for _, r := range rs.Rows {
		known[fmt.Sprint(r[0])] = fmt.Sprint(r[1])
	}
	return known, nil
}

// folder is where the files of a run are on the stage. Paths of stages are beginnings of names: without the last slash
// the folder of epoch 1 would be that of epoch 12, too.
func folder(runID string) string {
	sum := sha256.Sum256([]byte(runID))
	return "loadstone/" + hex.EncodeToString(sum[:16]) + "/"
}

// epochFolder is where the files of a claim are.
func epochFolder(c refresh.Claim) string {
	return folder(c.Subtask) + strconv.FormatInt(c.Epoch, 10) + "/"
}

func wipe(ctx context.Context, t target.Tx, runID, part string) error {
	for _, table := range []string{Executions, Parts} {
		sql, args := "DELETE FROM "+table+" WHERE RUN_ID = ?", []any{runID}
		if part != "" {
			sql, args = sql+" AND PART = ?", append(args, part)
		}
		if err := t.Exec(ctx, sql, args...); err != nil {
			return err
		}
	}
	return nil
}

func (e *Export) drop(ctx context.Context, c refresh.Claim, prove func(context.Context) error) error {
	err := e.together(ctx, c, prove, func(t target.Tx) error {
		if err := e.wipeFacts(ctx, t, c.Subtask); err != nil {
			return err
		}
		return wipe(ctx, t, c.Subtask, "")
	})
	if err == nil {
		err = e.Account.Exec(ctx, "REMOVE '@~/"+folder(c.Subtask)+"'")
	}
	if err != nil {
		return fmt.Errorf("removing run %s from the results connection: %w", c.Subtask, err)
	}
	return nil
}

func (e *Export) forget(ctx context.Context, c refresh.Claim, part string, prove func(context.Context) error) error {
	return e.together(ctx, c, prove, func(t target.Tx) error { return wipe(ctx, t, c.Subtask, part) })
}

// part takes one part of a run out that started at startNs: its files first, which count once they are copied.
func (e *Export) part(ctx context.Context, c refresh.Claim, a engine.Artifact, startNs int64,
	prove func(context.Context) error) (rows, size int64, problem string, err error) {
	if problem, err = e.check(ctx, a); err != nil || problem != "" {
		return 0, 0, problem, err
	}
	at := epochFolder(c)
	var files []string
	f := newFile()
	flush := func() error {
		if f.rows == 0 {
			return nil
		}
		content, err := f.end()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%.16s-%d.parquet", a.SHA256, len(files))
		files, size = append(files, "'"+name+"'"), size+int64(len(content))
		f = newFile()
		return e.Account.Put(ctx, at+name, content)
	}
	var sending error
	var seen times
	err = e.Record.ReadExecutions(ctx, c.Subtask, a.Name, func(x *rollup.Executions) error {
		if sending = f.add(&a, startNs, x, &e.history); sending == nil && f.rows >= maxRowsPerFile {
			sending = flush()
		}
		seen.add(x, startNs)
		return sending
	})
	switch {
	case err != nil && sending == nil && ctx.Err() == nil && !store.IsTransient(err):
		return 0, 0, a.Name + " is damaged.", nil
	case err != nil:
		return 0, 0, "", fmt.Errorf("taking out part %s of run %s: %w", a.Name, c.Subtask, err)
	}
	if err = flush(); err == nil {
		err = e.copy(ctx, c, a, at, files, seen, prove)
	}
	if err == nil {
		// What a worker that ended has left goes, too.
		err = e.Account.Exec(ctx, "REMOVE '@~/"+at+"'")
	}
	if err != nil {
		return 0, 0, "", fmt.Errorf("taking out part %s of run %s: %w", a.Name, c.Subtask, err)
	}
	return seen.rows, size, "", nil
}

func (e *Export) copy(ctx context.Context, c refresh.Claim, a engine.Artifact, at string, files []string,
	times times, prove func(context.Context) error) error {
	return e.Account.InTransaction(ctx, transactionName(c), func(t target.Tx) error {
		// What is not there is not deleted: DELETE would lock the table, and others wait for it.
		rs, err := t.Query(ctx, `SELECT (SELECT COUNT(*) FROM QUERY_EXECUTIONS WHERE RUN_ID = ? AND PART = ?) +
			(SELECT COUNT(*) FROM LOADSTONE_PARTS WHERE RUN_ID = ? AND PART = ?)`, c.Subtask, a.Name, c.Subtask, a.Name)
		if err != nil {
			return err
		}
		if n, err := number(rs.Rows[0][0]); err != nil || n > 0 {
			if err = errors.Join(err, wipe(ctx, t, c.Subtask, a.Name)); err != nil {
				return err
			}
		}
		if len(files) > 0 {
			// FORCE: a file of that name may have been loaded by a transaction that was undone, or cleared since.
			// USE_LOGICAL_TYPE: without it times are numbers to an account, and come to be in another age.
			if err := t.Exec(ctx, "COPY INTO QUERY_EXECUTIONS FROM '@~/"+at+"' FILES = ("+strings.Join(files, ", ")+
				") FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE) MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE "+
				"ON_ERROR = ABORT_STATEMENT FORCE = TRUE"); err != nil {
				return err
			}
		}
		// The run is held as late as can be: copying takes a while, and others have runs of their own to hold. What was
		// copied is counted after that, when nobody else can have copied it meanwhile.
		if err := hold(ctx, t, c); err != nil {
			return err
		}
		if err := verify(ctx, t, c.Subtask, a.Name, times); err != nil {
			return err
		}
		if err := t.Exec(ctx, "INSERT INTO LOADSTONE_PARTS (RUN_ID, PART, SHA256, ROW_COUNT) VALUES (?, ?, ?, ?)", c.Subtask,
			a.Name, e.history.version(a), times.rows); err != nil || prove == nil {
			return err
		}
		return prove(ctx)
	})
}

// times are how many executions of a part there are, and when they were due and begun, in microseconds since 1970.
type times struct {
	rows                 int64
	due, lastDue         int64
	started, lastStarted int64
}

func (t *times) add(x *rollup.Executions, startNs int64) {
	for i := range x.DueNs {
		due, started := x.DueMicro(i, startNs), x.StartedNs[i]/1000
		if t.rows == 0 {
			t.due, t.lastDue, t.started, t.lastStarted = due, due, started, started
		}
		t.due, t.lastDue = min(t.due, due), max(t.lastDue, due)
		t.started, t.lastStarted = min(t.started, started), max(t.lastStarted, started)
		t.rows++
	}
}

// verify holds what was copied of a part against what was recorded, before the transaction ends: an account that reads
// times as something else than they are must not keep them.
func verify(ctx context.Context, t target.Tx, runID, part string, want times) error {
	rs, err := t.Query(ctx, `SELECT COUNT(*), MIN(DUE_AT), MAX(DUE_AT), MIN(STARTED_AT), MAX(STARTED_AT)
		FROM QUERY_EXECUTIONS WHERE RUN_ID = ? AND PART = ?`, runID, part)
	if err != nil {
		return err
	}
	if n, err := number(rs.Rows[0][0]); err != nil || n != want.rows {
		return errors.Join(err, fmt.Errorf("%d of %d executions were copied", n, want.rows))
	}
	if want.rows == 0 {
		return nil
	}
	for i, micro := range []int64{want.due, want.lastDue, want.started, want.lastStarted} {
		moment := time.UnixMicro(micro).UTC()
		if got, ok := rs.Rows[0][i+1].(time.Time); !ok || !got.Equal(moment) {
			return &engine.Error{Code: engine.CodeTarget,
				Message: fmt.Sprintf("The account reads other times than were recorded: an execution of %s that has %s is at %v "+
					"there. Nothing of the part was kept.", part, moment.Format(time.RFC3339Nano), rs.Rows[0][i+1]),
				Hint: "The columns DUE_AT and STARTED_AT of QUERY_EXECUTIONS have to be TIMESTAMP_NTZ, and COPY INTO has to take " +
					"USE_LOGICAL_TYPE = TRUE. Tell us: it is a difference between this account and those that Loadstone knows."}
		}
	}
	return nil
}

// check says what is wrong with a stored part, "" when it is the one that was recorded.
func (e *Export) check(ctx context.Context, a engine.Artifact) (problem string, err error) {
	file, _, err := e.Record.Open(ctx, a.RunID, a.Name)
	if errors.Is(err, store.ErrNotFound) {
		return a.Name + " is not there.", nil
	}
	if errors.Is(err, store.ErrDamaged) {
		return engine.AsError(err).Message, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading part %s of run %s: %w", a.Name, a.RunID, err)
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if errors.Is(err, store.ErrDamaged) {
		return engine.AsError(err).Message, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading part %s of run %s: %w", a.Name, a.RunID, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return a.Name + " is not what was recorded: its SHA-256 is another.", nil
	}
	return "", nil
}

// file is one that is being written.
type file struct {
	buffer bytes.Buffer
	w      *parquet.GenericWriter[row]
	rows   int
}

func newFile() *file {
	f := &file{}
	f.w = parquet.NewGenericWriter[row](&f.buffer, parquet.Compression(&parquet.Zstd))
	return f
}

func (f *file) add(a *engine.Artifact, startNs int64, x *rollup.Executions, h *history) error {
	rows := make([]row, len(x.DueNs))
	for i := range rows {
		rows[i] = row{RunID: a.RunID, Part: a.Name, ResultID: a.ResultID, Seq: int64(x.Seq[i]), DueAt: x.DueMicro(i, startNs),
			StartedAt: x.StartedNs[i] / 1000, ElapsedMs: x.ElapsedMs[i], LagMs: x.LagMs[i], WaitMs: x.WaitMs[i],
			DecodeNs: x.DecodeNs[i], Connection: int64(x.Connection[i]), Step: x.Step[i], Rows: int64(x.Rows[i]),
			Retries: x.Retries[i], Position: x.Position[i], Warmup: x.Warmup[i], Success: x.Success[i],
			RolledBack: x.RolledBack[i], Worker: x.Worker.At(i), Kind: x.Kind.At(i), Statement: x.Statement.At(i),
			ErrorClass: orNull(&x.Class, i), ErrorCode: orNull(&x.Code, i), ErrorMessage: orNull(&x.Message, i),
			ServerQueryID: orNull(&x.QueryID, i)}
		rows[i].historyRow = h.of(rows[i].ServerQueryID)
	}
	f.rows += len(rows)
	_, err := f.w.Write(rows)
	return err
}

func orNull(t *record.Texts, i int) *string {
	if t.Index[i] < 0 {
		return nil
	}
	text := strings.ToValidUTF8(t.At(i), "\uFFFD")
	return &text
}

func (f *file) end() ([]byte, error) {
	if err := f.w.Close(); err != nil {
		return nil, fmt.Errorf("writing Parquet: %w", err)
	}
	return f.buffer.Bytes(), nil
}
