package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

const (
	// triedOps is how many operations of each statement are tried, drawnOps how many are drawn to find them.
	triedOps, drawnOps, maxDrawn = 20, 20_000, 512
	// trialTimeout bounds the trial of one statement, and each execution in it.
	trialTimeout = 5 * time.Second
	// trialLock bounds each wait for a lock of somebody else. It is below the second after which Postgres looks for
	// deadlocks, so that the trial gives way before an application's transaction is ended in its place.
	trialLock = 500 * time.Millisecond
	// settleID names the statement that has constraints checked, locksID the one that bounds waits for locks.
	settleID, locksID = "settle", "locks"
)

// trial is the attempt to execute what a run would write, undone each time.
type trial struct {
	*planner
	plan *engine.Plan
	conn target.Conn
	// drawn are the operations of each statement.
	drawn map[int][]drawnOp
	// tried are the ids of the statements that the database takes, findings what else there is to say.
	tried    []string
	findings []CheckResult
	// undrawn are those of which the stream had no operation.
	undrawn []string
	// locks and settle are the places of those statements in the connection's list; 0 is none.
	locks, settle uint16
}

type drawnOp struct {
	batch *plugin.Batch
	op    plugin.Op
}

// tryWrites executes a handful of operations of each writing statement whose SQL the adapter wrote, in transactions
// that are rolled back, and refuses a run whose operations the database refuses. It returns what it found.
func (p *planner) tryWrites(ctx context.Context, plan *engine.Plan) ([]CheckResult, error) {
	wanted := p.triable(plan)
	if len(wanted) == 0 {
		return nil, nil
	}
	t := &trial{planner: p, plan: plan, drawn: map[int][]drawnOp{}}
	if err := t.draw(ctx, wanted); err != nil {
		return nil, err
	}
	database, err := p.driver.Open(p.trialConfig())
	if err != nil {
		return nil, targetError("trying the statements", err)
	}
	defer func() { _ = database.Close() }()
	if err := t.connect(ctx, database); err != nil {
		return nil, targetError("trying the statements", err)
	}
	defer func() { _ = t.conn.Close() }()
	defer context.AfterFunc(ctx, t.hangUp)()
	refused := &engine.Error{Code: engine.CodeInvalid}
	for n, i := range wanted {
		if err := t.try(ctx, i); err != nil && !t.note(i, err) {
			refused.Fields = append(refused.Fields, t.fault(i, err))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if t.conn.Broken() {
			t.untried(wanted[n+1:])
			break
		}
	}
	if len(refused.Fields) == 0 {
		return t.found(), nil
	}
	refused.Message = fmt.Sprintf(
		"The database refuses what the run would write (tried with %d operations that were undone).",
		triedOps,
	)
	return nil, refused
}

// triable are the statements that the trial executes.
func (p *planner) triable(plan *engine.Plan) (list []int) {
	if !p.tries || p.sc.Workload.Feed != nil {
		return nil
	}
	return p.writing(plan)
}

// writing are the statements that write and whose SQL is the adapter's; with tryOwn, those of the workload too.
func (p *planner) writing(plan *engine.Plan) (list []int) {
	for i, w := range p.wanted {
		own, _ := ownSQL(p.adapter.Info(), w, plan.Tables)
		if s := plan.Statements[i]; s.Writes && (own == "" || p.tryOwn && undoable(s.SQL, p.resolved.dialect())) {
			list = append(list, i)
		}
	}
	return list
}

// undoable tells statements that change rows and nothing else, which a transaction undoes.
func undoable(sql string, dialect sqltext.Dialect) bool {
	tokens, err := sqltext.Tokens(sql, dialect)
	return err == nil && len(tokens) > 0 &&
		slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "MERGE"}, tokens[0].Upper())
}

// trialConfig is how the trial reaches the target: as the preparation does, with a limit on each statement.
func (p *planner) trialConfig() target.Config {
	return target.Config{DSN: p.dsn, Session: p.session, StatementTimeout: trialTimeout,
		ApplicationName: "loadstone trial", Warehouse: p.sc.Target.Warehouse, Prepared: p.sc.Target.Prepared}
}

// connect opens the connection of the trial. A server that cannot prepare what the trial adds does without it.
func (t *trial) connect(ctx context.Context, database target.Database) error {
	limiter, limits := database.(target.LockLimiter)
	err := t.connectWith(ctx, database, limiter, t.planner.settle)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if again := t.connectWith(ctx, database, limiter, ""); again == nil {
		t.say("", "The server cannot check deferred constraints before COMMIT: they were not tried.")
		return nil
	}
	if limits && ctx.Err() == nil && t.connectWith(ctx, database, nil, "") == nil {
		t.say("",
			"The server can bound no wait for a lock, nor check deferred constraints before COMMIT: they were not tried.")
		return nil
	}
	return err
}

func (t *trial) connectWith(ctx context.Context, database target.Database, limiter target.LockLimiter,
	settle string) (err error) {
	statements := slices.Clone(t.plan.Statements)
	t.locks, t.settle = 0, 0
	add := func(id, sql string) uint16 {
		statements = append(statements, engine.Statement{ID: id, Kind: engine.KindGenericSQL, SQL: sql})
		return uint16(len(statements) - 1)
	}
	if limiter != nil {
		t.locks = add(locksID, limiter.LockLimit(trialLock))
	}
	if settle != "" {
		t.settle = add(settleID, settle)
	}
	t.conn, err = database.Connect(ctx, statements)
	return err
}

// hangUp ends what is under way: the server is told, since it does not notice a closed socket while it executes.
func (t *trial) hangUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = t.conn.Cancel(ctx)
	_ = t.conn.Close()
}

// draw opens the workload's stream as a run would, and takes operations of the wanted statements.
func (t *trial) draw(ctx context.Context, wanted []int) error {
	stream, err := t.workload.Open(ctx, plugin.OpenRequest{Seed: t.sc.Workload.Seed, KeySlots: max(t.plan.KeySlots, 1),
		Params: t.params, Tables: t.plan.Tables, Pools: t.plan.Pools}, t.plan.Statements)
	if err != nil {
		return pluginFailed(t.workload.Info(), "opening a stream", err)
	}
	defer func() { _ = stream.Close() }()
	missing := len(wanted)
	for ops, size := 0, triedOps; ops < drawnOps && missing > 0 && ctx.Err() == nil; size = maxDrawn {
		batch := &plugin.Batch{}
		err := stream.Fill(batch, size)
		switch {
		case errors.Is(err, plugin.ErrEnded), errors.Is(err, plugin.ErrFailed) && ops > 0:
			return nil // a stream may end, or run out of new keys, when it has gone on for long enough
		case err != nil:
			return pluginFailed(t.workload.Info(), "making operations", err)
		}
		inside := false
		for _, op := range batch.Ops {
			switch op.Statement {
			case plugin.StatementBegin:
				inside = true
			case plugin.StatementCommit, plugin.StatementRollback:
				inside = false
			}
			// What stands in a transaction may refer to what came before it.
			if i := int(op.Statement); !inside && slices.Contains(wanted, i) && len(t.drawn[i]) < triedOps {
				if t.drawn[i] = append(t.drawn[i], drawnOp{batch, op}); len(t.drawn[i]) == triedOps {
					missing--
				}
			}
		}
		ops += len(batch.Ops)
	}
	return ctx.Err()
}

// say adds a finding, which is a line of the run's log too.
func (t *trial) say(fix, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	t.notes = append(t.notes, message)
	t.findings = append(t.findings, CheckResult{Name: checkTrial, Outcome: CheckWarning, Message: message, Fix: fix})
}

// untried names the statements that a lost connection left untried.
func (t *trial) untried(left []int) {
	var ids []string
	for _, i := range left {
		ids = append(ids, t.plan.Statements[i].ID)
	}
	if len(ids) > 0 {
		t.say("start the run again when the database keeps its connections",
			"Not tried before the load, because the connection was lost: %s.", joinWords(ids))
	}
}

// found are the findings of a trial after which the run may begin.
func (t *trial) found() []CheckResult {
	if len(t.undrawn) > 0 {
		t.say(
			"",
			"Not tried before the load: %s. Among the first %d operations none of them stands outside of a transaction.",
			joinWords(t.undrawn),
			drawnOps,
		)
	}
	if len(t.tried) == 0 {
		return t.findings
	}
	return append(t.findings, CheckResult{Name: checkTrial, Outcome: CheckOK,
		Message: fmt.Sprintf("The database takes %s: up to %d operations of each were executed and rolled back. Triggers "+
			"were fired by that, and sequences advanced.", joinWords(t.tried), triedOps)})
}

// try executes the operations of a statement in one transaction, and undoes them.
func (t *trial) try(ctx context.Context, i int) error {
	if len(t.drawn[i]) == 0 {
		t.undrawn = append(t.undrawn, t.plan.Statements[i].ID)
		return nil
	}
	var rows int64
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	control := func(statement uint16) error {
		return t.conn.Exec(ctx, &plugin.Batch{}, plugin.Op{Statement: statement}, &target.Result{})
	}
	err := control(plugin.StatementBegin)
	if err == nil && t.locks > 0 {
		err = control(t.locks)
	}
	for _, d := range t.drawn[i] {
		if err == nil {
			if err = ctx.Err(); err == nil {
				var res target.Result
				err = t.conn.Exec(ctx, d.batch, d.op, &res)
				rows += int64(res.Rows)
			}
		}
	}
	if err == nil && t.settle > 0 {
		err = control(t.settle) // what is checked at COMMIT only
	}
	if t.conn.Broken() {
		return err
	}
	if back := control(plugin.StatementRollback); back != nil && err == nil {
		return back
	}
	switch {
	case err != nil:
	case rows == 0:
		t.say("see that the table has the rows, and the keys, that the run is going to use",
			"The statement %s met no row in any of the %d operations that were tried: the database takes it, and nothing is "+
				"known of what it changes.", t.plan.Statements[i].ID, len(t.drawn[i]))
	default:
		t.tried = append(t.tried, t.plan.Statements[i].ID)
	}
	return err
}

// trialFixes say what helps when a statement could not be tried.
var trialFixes = map[engine.ErrorClass]string{
	engine.ErrClassLock:          "start the run again when nobody holds locks on the table",
	engine.ErrClassDeadlock:      "start the run again when nobody else writes to the table",
	engine.ErrClassSerialization: "start the run again when nobody else writes to the table",
	engine.ErrClassTimeout: fmt.Sprintf("see why one execution takes longer than %v: a trigger, a missing index, "+
		"rows of other tables that go along", trialTimeout),
	engine.ErrClassConnection: "see why the database ended the connection: its log tells",
	engine.ErrClassResource:   "see what the database has run out of",
	engine.ErrClassThrottled:  "start the run again when the database has less to do",
	engine.ErrClassCancelled:  "see who cancelled it, or which limit of the database's did",
}

// note takes what says nothing about the values, such as a lock of somebody else, for a note.
func (t *trial) note(i int, err error) bool {
	said := t.database.Classify(err)
	switch said.Class {
	case engine.ErrClassConstraint, engine.ErrClassData, engine.ErrClassSyntax, engine.ErrClassAuth, engine.ErrClassOther:
		return false
	}
	t.say(trialFixes[said.Class], "The statement %s could not be tried before the load: %s", t.plan.Statements[i].ID,
		executions.Mask(textsafe.OneLine(said.Message)))
	return true
}

// fault says what the database refuses, on which columns, and what helps.
func (t *trial) fault(i int, err error) engine.FieldError {
	s, w := t.plan.Statements[i], t.wanted[i]
	said := t.database.Classify(err)
	f := engine.FieldError{Field: paramsField, Hint: w.Hint}
	if w.Param != "" {
		f.Field += "." + w.Param
	}
	var table *engine.Table
	for k := range t.plan.Tables {
		if t.plan.Tables[k].Name == s.Table || s.Table == "" && len(t.plan.Tables) == 1 {
			table = &t.plan.Tables[k]
		}
	}
	f.Message = fmt.Sprintf("%s: %s", s.Kind, strings.TrimRight(executions.Mask(textsafe.OneLine(said.Message)), "."))
	if table != nil {
		columns, left := broken(table, s, said.Message)
		if len(columns) > 0 {
			f.Message += fmt.Sprintf(" (on the column %s)", strings.Join(columns, ", "))
		}
		if left != "" {
			f.Hint = fmt.Sprintf(
				"the default of %s gives a value that the table has already: set its sequence beyond the largest one "+
					"(setval). Or %s",
				left,
				f.Hint,
			)
		}
	}
	if f.Hint == "" {
		f.Hint = "leave statements of this kind out"
	}
	return f
}

// broken are the columns of the constraint that a message names, or, where it names none, those written columns that
// checks without a name of their own bind. left is a unique column that the statement leaves to its default.
func broken(table *engine.Table, s engine.Statement, message string) (columns []string, left string) {
	bound := func(name string) bool {
		return slices.ContainsFunc(s.Binds, func(b engine.Bind) bool { return b.Column == name })
	}
	add := func(list []string) {
		for _, name := range list {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	for _, c := range table.Constraints {
		switch {
		case c.Name != "" && strings.Contains(message, `"`+c.Name+`"`):
			add(c.Columns)
			for _, column := range table.Columns {
				if c.Kind == "unique" && column.Fresh && slices.Contains(c.Columns, column.Name) && !bound(column.Name) {
					left = column.Name
				}
			}
		case c.Kind == "domain" && strings.Contains(message, "domain"),
			c.Kind == "partition" && strings.Contains(message, "partition"):
			add(slices.DeleteFunc(slices.Clone(c.Columns), func(name string) bool { return !bound(name) }))
		}
	}
	return columns, left
}
