package snowflakeexport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/target"
)

// facts are what is known of a run besides its executions: its row in TEST_RESULTS, and the polls of its warehouse. The
// row comes last, after all parts, so that views show whole runs.
type facts struct {
	columns []string
	values  []any
	polls   [][]any
}

// pollsPerInsert are in one INSERT.
const pollsPerInsert = 200

var pollColumns = []string{"RUN_ID", "TIMESTAMP", "ELAPSED_SECONDS", "WAREHOUSE_NAME", "STATE", "WAREHOUSE_TYPE",
	"WAREHOUSE_SIZE", "STARTED_CLUSTERS", "RUNNING", "QUEUED", "MIN_CLUSTER_COUNT", "MAX_CLUSTER_COUNT", "SCALING_POLICY"}

func factsOf(d engine.RunDetail, points []engine.WarehousePoint) facts {
	f := facts{}
	set := func(column string, value any) {
		f.columns, f.values = append(f.columns, column), append(f.values, value)
	}
	scenario := d.Scenario
	set("RUN_ID", d.RunID)
	set("RUN_NAME", d.RunName)
	set("TEMPLATE_NAME", scenario.TemplateName)
	set("ADAPTER", scenario.Target.Adapter)
	set("TABLE_NAME", scenario.Target.TableName)
	set("STATUS", string(d.Status))
	set("LOAD_MODE", string(scenario.Workload.LoadMode))
	set("START_TIME", moment(d.StartTime))
	set("END_TIME", moment(d.EndTime))
	set("CREATED_BY", d.CreatedBy)
	if s := d.Summary; s != nil {
		set("VERDICT", s.Verdict)
		set("SIMULATED", s.Simulated)
		set("DURATION_SECONDS", s.DurationSeconds)
		if s.QPS != nil {
			set("QPS", *s.QPS)
		}
		if c := s.Cost; c != nil {
			set("WAREHOUSE_NAME", c.Warehouse)
			set("WAREHOUSE_SIZE", c.WarehouseSize)
			set("CREDITS", c.Credits)
			set("PRICE", c.Price)
			set("CURRENCY", c.Currency)
			if c.PricePerMillion != nil {
				set("PRICE_PER_MILLION", *c.PricePerMillion)
			}
		}
	}
	for _, p := range points {
		f.polls = append(f.polls, []any{d.RunID, moment(p.Timestamp), p.ElapsedSeconds, p.Name, p.State, p.Type, p.Size,
			count(p.StartedClusters), p.Running, p.Queued, count(p.MinClusterCount), count(p.MaxClusterCount), p.ScalingPolicy})
	}
	return f
}

// count is a number as a bound value, nil for one that is not known.
func count(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

// moment is a time as a bound value, nil for none.
func moment(t engine.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Time
}

// fingerprint tells whether anything of them has changed.
func (f facts) fingerprint() (string, error) {
	text, err := json.Marshal([]any{f.columns, f.values, f.polls})
	if err != nil {
		return "", fmt.Errorf("writing what is known of a run: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// writeFacts writes what is known of the run into the account, unless it is there already. Where TEST_RESULTS is not
// Loadstone's, whether polls are there is not known, and they are written each time.
func (e *Export) writeFacts(ctx context.Context, c refresh.Claim, d engine.RunDetail,
	prove func(context.Context) error) (changed bool, err error) {
	points, err := e.Store.Warehouse(ctx, c.Subtask)
	if err != nil {
		return false, fmt.Errorf("reading the warehouse of run %s: %w", c.Subtask, err)
	}
	if !e.tables.Has(Polls) {
		points = nil // which makes the fingerprint another than that with them
	}
	f := factsOf(d, points)
	print, err := f.fingerprint()
	if err != nil {
		return false, err
	}
	known, there, err := e.factsFingerprint(ctx, c.Subtask)
	if err != nil || there && known == print {
		return false, err
	}
	f.columns, f.values = append(f.columns, "FINGERPRINT"), append(f.values, print)
	return true, e.together(ctx, c, prove, func(t target.Tx) error {
		if err := e.wipeFacts(ctx, t, c.Subtask); err != nil {
			return err
		}
		for some := range slices.Chunk(f.polls, pollsPerInsert) {
			if err := insert(ctx, t, Polls, pollColumns, some...); err != nil {
				return err
			}
		}
		if !e.tables.Has(Results) {
			return nil
		}
		return insert(ctx, t, Results, f.columns, f.values)
	})
}

// deleteFacts takes what is known of the run out of the account, and with it the run out of the views: figures over
// some of its executions would look like those over all.
func (e *Export) deleteFacts(ctx context.Context, c refresh.Claim, _ engine.RunDetail,
	prove func(context.Context) error) (changed bool, err error) {
	_, there, err := e.factsFingerprint(ctx, c.Subtask)
	if err == nil && !there && prove != nil {
		err = prove(ctx) // that the parts could not be read is said of a run that has some
	}
	if err != nil || !there {
		return false, err
	}
	return true, e.together(ctx, c, prove, func(t target.Tx) error { return e.wipeFacts(ctx, t, c.Subtask) })
}

// factsFingerprint is the fingerprint of what the account knows of a run, as far as it knows of it.
func (e *Export) factsFingerprint(ctx context.Context, runID string) (print string, there bool, err error) {
	if !e.tables.Has(Results) {
		return "", false, nil
	}
	rs, err := e.Account.Query(ctx, "SELECT FINGERPRINT FROM TEST_RESULTS WHERE RUN_ID = ?", runID)
	if err != nil {
		return "", false, fmt.Errorf("looking what is known of run %s: %w", runID, err)
	}
	if len(rs.Rows) != 1 {
		return "", false, nil
	}
	return fmt.Sprint(rs.Rows[0][0]), true, nil
}

func insert(ctx context.Context, t target.Tx, table string, columns []string, rows ...[]any) error {
	marks := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")"
	all := strings.TrimSuffix(strings.Repeat(marks+", ", len(rows)), ", ")
	return t.Exec(ctx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES "+all, slices.Concat(rows...)...)
}

func (e *Export) wipeFacts(ctx context.Context, t target.Tx, runID string) error {
	for _, table := range []string{Results, Polls} {
		if !e.tables.Has(table) {
			continue
		}
		if err := t.Exec(ctx, "DELETE FROM "+table+" WHERE RUN_ID = ?", runID); err != nil {
			return err
		}
	}
	return nil
}
