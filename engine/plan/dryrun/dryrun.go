// Package dryrun shows who writes statements what becomes of them before a run: the values that their generators make,
// how the database would execute them, and the rows of those that only read. Nothing is ever written: what reads is
// executed in a transaction that cannot write, what writes is only explained.
package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// The limits of a trial.
const (
	totalTimeout     = 20 * time.Second
	statementTimeout = 5 * time.Second
	// sampleCount is how many values of each parameter are shown, shownRows how many rows of a result.
	sampleCount, maxShownRows = 5, 10
	// maxDrawnOps bounds the operations that are drawn to find those of one statement, fillOps those of a batch.
	maxDrawnOps, batchOps = 50_000, 512
	maxValueLength        = 300
)

// Runner is what trials need of the rest. It is safe for concurrent use.
type Runner struct{ Deps prepare.Deps }

// TrialParameter is a parameter of a statement with values that a run would give it.
type TrialParameter struct {
	Name string `json:"name"`
	// Type is the plugin's: i64, f64, text, bytes, bool, timestamp.
	Type engine.ValueType `json:"type"`
	// Values are the first ones, in words; null is NULL. Those of one index belong to one execution.
	Values []*string `json:"values"`
}

// TrialProblem is what the database, or a check, says against a statement.
type TrialProblem struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Field   string `json:"field,omitempty"`
}

// StatementTrial is what was found out of one statement.
type StatementTrial struct {
	// OK is false when a run of it would not begin; Problems say why.
	OK       bool           `json:"ok"`
	Problems []TrialProblem `json:"problems"`
	// Statement is its id, SQL as the database gets it, with positional parameters.
	Statement  string           `json:"statement"`
	SQL        string           `json:"sql"`
	Kind       engine.Kind      `json:"kind"`
	Writes     bool             `json:"writes"`
	Parameters []TrialParameter `json:"parameters"`
	// Explain is the database's plan for the first values, line by line; ExplainProblem says why there is none.
	Explain        []string      `json:"explain"`
	ExplainProblem *TrialProblem `json:"explain_problem"`
	// Executed: it was executed once with the first values, and undone. NotExecuted says why not.
	Executed    bool   `json:"executed"`
	NotExecuted string `json:"not_executed,omitempty"`
	// Columns and Rows are the beginning of its result, RowCount is how many rows it has in all.
	Columns   []string    `json:"columns"`
	Rows      [][]*string `json:"rows"`
	RowCount  int         `json:"row_count"`
	ElapsedMs float64     `json:"elapsed_ms"`
	// Failed is the database's refusal of the execution, or of the values that it would have.
	Failed *TrialProblem `json:"failed"`
	// Faults are the parameters whose values are refused, as far as it is about single ones.
	Faults []TrialFault `json:"faults"`
	// Notes are sentences on what stands for what.
	Notes []string `json:"notes"`
}

// Try finds out what becomes of one statement of a scenario, the first when id is empty. What is wrong with the
// scenario, the statement or the target is told in the trial; an error is this program's, or the control store's.
func (b *Runner) Try(ctx context.Context, sc engine.Scenario, id string) (StatementTrial, error) {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	if sc.Matrix != nil {
		sc = sc.Expand()[0]
	}
	sc.AllowWrites() // nothing is written, so that nobody has to be asked
	t := StatementTrial{Problems: []TrialProblem{}, Parameters: []TrialParameter{}, Explain: []string{},
		Columns: []string{}, Rows: [][]*string{}, Faults: []TrialFault{}, Notes: []string{}}
	found, err := prepare.Describe(ctx, b.Deps, sc)
	if err != nil {
		return t, err
	}
	for _, c := range found.Checks {
		if c.Outcome == prepare.CheckFailed {
			t.Problems = append(t.Problems, TrialProblem{Message: c.Message, Hint: c.Fix, Field: c.Field})
		}
	}
	t.OK = len(t.Problems) == 0
	if found.Plan == nil {
		return t, nil
	}
	n := indexOf(found.Plan.Statements, id)
	if n < 0 {
		return t, engine.InvalidField("statement", fmt.Sprintf("there is no statement %q", id), "name one of the template")
	}
	s := found.Plan.Statements[n]
	t.Statement, t.SQL, t.Kind, t.Writes = s.ID, s.SQL, s.Kind, s.Writes
	draws, err := b.draw(ctx, sc, found.Plan, n)
	var said *engine.Error
	switch {
	case errors.As(err, &said):
		t.refuse(said.Message, said.Hint)
		return t, nil
	case err != nil:
		return t, err
	}
	t.Parameters = parameters(s, draws)
	if len(draws) == 0 && len(s.Binds) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s is issued so seldom that no values were drawn for it among the first %d "+
			"operations: give it a weight to try it.", s.ID, maxDrawnOps))
		return t, nil
	}
	if !t.OK {
		return t, nil // the database has refused it already, in better words than a second time
	}
	sc.Target.HousekeepingWarehouse = "" // what is tried is a statement of the load
	at, err := prepare.Attach(ctx, b.Deps, sc, found.Plan, "trial")
	if err != nil {
		return t, err
	}
	defer at.Close()
	p := &probe{database: at.Database(), plan: found.Plan, trial: &t}
	var first draw
	if len(draws) > 0 {
		first = draws[0]
	}
	args := p.arguments(ctx, s, first)
	p.explain(ctx, s, args)
	if t.Failed == nil {
		p.execute(ctx, s, args)
	}
	return t, nil
}

func (t *StatementTrial) refuse(message, hint string) {
	t.OK = false
	t.Problems = append(t.Problems, TrialProblem{Message: message, Hint: hint})
}

func indexOf(list []engine.Statement, id string) int {
	for i, s := range list {
		if id == "" || s.ID == id {
			return i
		}
	}
	return -1
}

// draw opens the workload's stream as a run would and takes its operations until there are enough of statement n.
func (b *Runner) draw(ctx context.Context, sc engine.Scenario, plan *engine.Plan, n int) ([]draw, error) {
	w, err := b.Deps.Plugins.Workload(ctx, plan.Workload.SHA256)
	if err != nil {
		return nil, fmt.Errorf("opening the workload: %w", err)
	}
	again, err := prepare.Restore(ctx, b.Deps, sc, plan)
	if err != nil {
		return nil, err
	}
	request := plugin.OpenRequest{Seed: sc.Workload.Seed, KeySlots: max(plan.KeySlots, 1), Params: again.Params,
		Tables: plan.Tables, Pools: plan.Pools}
	if f := sc.Workload.Feed; f != nil {
		if f.CSV == "" {
			return nil, &engine.Error{Code: engine.CodeUnsupported,
				Message: "The values of a recorded run are made anew when it is replayed, and not before.",
				Hint:    "try the statements in the run's own template"}
		}
		if err := replay.CheckCSV(f.CSV, plan.Statements); err != nil {
			return nil, err
		}
		request.Feed = replay.NewCSV(f.CSV, plan.Statements, 0, 1)
	}
	stream, err := w.Open(ctx, request, plan.Statements)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { _ = stream.Close() }()
	var list []draw
	var inside []operation
	var batch plugin.Batch
	for ops := 0; ops < maxDrawnOps && ctx.Err() == nil; ops += len(batch.Ops) {
		if err := stream.Fill(&batch, batchOps); errors.Is(err, plugin.ErrEnded) {
			break
		} else if err != nil {
			return nil, failed(err)
		}
		for _, op := range batch.Ops {
			if op.Statement >= plugin.StatementBegin {
				if op.Statement != plugin.StatementDelay {
					inside = nil
				}
				continue
			}
			o := operation{statement: int(op.Statement), args: values(&batch, op)}
			if o.statement == n {
				list = append(list, draw{operation: o, before: append([]operation(nil), inside...)})
				if len(list) == sampleCount {
					return list, nil
				}
			}
			if len(inside) < maxTransactionOps {
				inside = append(inside, o)
			}
		}
	}
	return list, nil
}

// maxTransactionOps is the most statements of a transaction; outside of one, nothing refers to what came before.
const maxTransactionOps = 256

// failed gives what a plugin says a code.
func failed(err error) error {
	var e *engine.Error
	if errors.As(err, &e) {
		return err
	}
	for _, of := range []error{plugin.ErrFailed, plugin.ErrTrapped, plugin.ErrInvalidBatch} {
		if errors.Is(err, of) {
			return &engine.Error{Code: engine.CodePlugin, Message: engine.AsError(err).Message, Cause: err}
		}
	}
	return fmt.Errorf("drawing values: %w", err)
}

func parameters(s engine.Statement, draws []draw) []TrialParameter {
	list := make([]TrialParameter, len(s.Binds))
	for i, b := range s.Binds {
		list[i] = TrialParameter{Name: b.Name, Type: b.Type, Values: []*string{}}
		for _, d := range draws {
			if i < len(d.args) {
				list[i].Values = append(list[i].Values, d.args[i].shown())
			}
		}
	}
	return list
}

// probe asks the database about one statement.
type probe struct {
	database target.Database
	plan     *engine.Plan
	trial    *StatementTrial
}

// readable is a statement as EXPLAIN and a transaction that reads take it, or why there is no such thing.
func readable(s engine.Statement) (engine.Statement, string) {
	if n, ok := sqltext.Names(s.SQL); ok {
		if s.SQL = n.Body; !n.Plain() {
			return s, "What stands under a name is explained and tried with the parameters of the EXECUTE as its values, in " +
				"their order: EXECUTE " + n.Name + "($1, $2 …)."
		}
	}
	if tokens, err := sqltext.Tokens(s.SQL, sqltext.Postgres); err == nil && len(tokens) > 0 &&
		tokens[0].Upper() == "COPY" {
		return s, "The database has no plan of a COPY."
	}
	return s, ""
}

func (p *probe) explain(ctx context.Context, s engine.Statement, args []any) {
	s, why := readable(s)
	if why != "" {
		p.trial.ExplainProblem = &TrialProblem{Message: why}
		return
	}
	rs, err := target.Read(ctx, p.database, "EXPLAIN "+s.SQL, statementTimeout, args...)
	if err != nil {
		said := p.problem(err)
		switch p.database.Classify(err).Class {
		case engine.ErrClassData, engine.ErrClassConstraint:
			// The same values would be refused when it is executed, and by the run.
			p.trial.Failed, p.trial.Faults = said, append(p.trial.Faults, p.faults(ctx, s, args)...)
		default:
			p.trial.ExplainProblem = said
		}
		return
	}
	for _, row := range rs.Rows {
		cells := make([]string, 0, len(row))
		for _, v := range row {
			if text := cell(v); text != nil {
				cells = append(cells, *text)
			}
		}
		p.trial.Explain = append(p.trial.Explain, strings.Join(cells, "  "))
	}
}

func (p *probe) execute(ctx context.Context, s engine.Statement, args []any) {
	if s.Writes {
		p.trial.NotExecuted = "It writes, so it is only explained: a trial changes nothing."
		return
	}
	reader, ok := p.database.(target.Reader)
	if !ok {
		p.trial.NotExecuted = "This database has no transactions that cannot write, so the statement is only explained."
		return
	}
	s, why := readable(s)
	if why != "" {
		p.trial.NotExecuted = why
		return
	}
	began := time.Now()
	rs, err := reader.Read(ctx, s.SQL, statementTimeout, args...)
	p.trial.ElapsedMs = engine.Milliseconds(time.Since(began).Round(time.Microsecond))
	if err != nil {
		p.trial.Failed = p.problem(err)
		return
	}
	p.trial.Executed, p.trial.RowCount = true, len(rs.Rows)
	p.trial.Columns = append(p.trial.Columns, rs.Columns...)
	for _, row := range rs.Rows[:min(maxShownRows, len(rs.Rows))] {
		cells := make([]*string, len(row))
		for i, v := range row {
			cells[i] = cell(v)
		}
		p.trial.Rows = append(p.trial.Rows, cells)
	}
}

// problem puts what the database answers into words.
func (p *probe) problem(err error) *TrialProblem {
	var e *engine.Error
	switch {
	case errors.As(err, &e):
		return &TrialProblem{Message: e.Message, Hint: e.Hint}
	case errors.Is(err, target.ErrTooLarge):
		return &TrialProblem{Message: "Its rows have more than 8 MB; the rest was not read.",
			Hint: "ask for fewer rows, with LIMIT"}
	}
	c := p.database.Classify(err)
	said := &TrialProblem{Message: c.Message}
	if c.Class == engine.ErrClassTimeout {
		said.Hint = fmt.Sprintf("a trial gives a statement %d s", int(statementTimeout.Seconds()))
	}
	if said.Message == "" {
		said.Message = "The database did not answer."
	}
	return said
}
