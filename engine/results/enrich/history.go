package enrich

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// History is a database's own record of executions.
type History interface {
	// Page calls row for each of the latest executions, a page of them at most, that
	// ended between from and to. The row is valid until the call returns; only what the history tells is set.
	Page(ctx context.Context, from, to time.Time, row func(*engine.EnrichedExecution) error) error
	// PageSize is the most rows of a page.
	PageSize() int
}

// NewHistory reads the history of db as an adapter's plan says. Its times are on
// the host's clock, whatever the database's says.
func NewHistory(db target.Database, plan plugin.EnrichPlan) History { return sqlHistory{db, plan} }

type sqlHistory struct {
	db   target.Database
	plan plugin.EnrichPlan
}

// timeArgument is how times are passed to a history.
const timeArgument = "2006-01-02 15:04:05.000 -07:00"

func argument(t time.Time) string { return t.UTC().Format(timeArgument) }

// The columns of a page, see plugin.EnrichPlan.
const (
	colID = iota
	colEnd
	colTotal
	colCompilation
	colExecution
	colProvisioning
	colRepair
	colOverload
	colBlocked
	colStatus
	colCluster
	numColumns
	numNeeded = colTotal + 1
)

var columnNames = [numColumns]string{"QUERY_ID", "END_TIME", "TOTAL_ELAPSED_TIME", "COMPILATION_TIME", "EXECUTION_TIME",
	"QUEUED_PROVISIONING_TIME",
	"QUEUED_REPAIR_TIME", "QUEUED_OVERLOAD_TIME", "TRANSACTION_BLOCKED_TIME", "EXECUTION_STATUS", "CLUSTER_NUMBER"}

// columnPositions finds columns by name; -1 is absent.
func columnPositions(names []string, wanted []string) []int {
	at := make([]int, len(wanted))
	for i, w := range wanted {
		at[i] = -1
		for c, name := range names {
			if strings.EqualFold(name, w) {
				at[i] = c
			}
		}
	}
	return at
}

func (h sqlHistory) PageSize() int { return h.plan.PageSize }

func (h sqlHistory) Page(ctx context.Context, from, to time.Time, row func(*engine.EnrichedExecution) error) error {
	var at []int
	ahead := time.Duration(h.plan.ClockOffsetMs) * time.Millisecond
	var e engine.EnrichedExecution
	// The ids of a page are text; what is not a query id is none of the run's.
	return target.Stream(ctx, h.db, h.plan.Page, []any{argument(from.Add(ahead)), argument(to.Add(ahead))},
		func(names []string) error {
			at = columnPositions(names, columnNames[:])
			for i := range numNeeded {
				if at[i] < 0 {
					return fmt.Errorf("the history has no column %s", columnNames[i])
				}
			}
			return nil
		},
		func(values []any) error {
			e = engine.EnrichedExecution{}
			text, _ := values[at[colID]].(string)
			id, err := engine.ParseQueryID(text)
			if err != nil {
				id = engine.QueryID{}
			}
			e.QueryID = id
			ended, err := instant(values[at[colEnd]])
			if err != nil {
				return err
			}
			if !ended.IsZero() {
				e.EndedAt = engine.At(ended.Add(-ahead))
			}
			for _, c := range []struct {
				col  int
				into *float64
			}{{colTotal, &e.ServerMs}, {colCompilation, &e.CompilationMs}, {colExecution, &e.ExecutionMs},
				{colProvisioning, &e.QueuedProvisioningMs},
				{colRepair, &e.QueuedRepairMs}, {colOverload, &e.QueuedOverloadMs}, {colBlocked, &e.BlockedMs}} {
				if at[c.col] < 0 {
					continue
				}
				if *c.into, err = number(values[at[c.col]]); err != nil {
					return fmt.Errorf("column %s: %w", columnNames[c.col], err)
				}
			}
			if at[colStatus] >= 0 {
				e.Status, _ = values[at[colStatus]].(string)
			}
			if at[colCluster] >= 0 {
				n, err := number(values[at[colCluster]])
				if err != nil {
					return fmt.Errorf("column %s: %w", columnNames[colCluster], err)
				}
				e.Cluster = int32(n)
			}
			return row(&e)
		})
}

// number reads what a driver gives for a numeric column; NULL is 0.
func number(v any) (float64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0, fmt.Errorf("%.40q is not a number", v)
		}
		return f, nil
	}
	return 0, fmt.Errorf("a %T is not a number", v)
}

// instant reads what a driver gives for a time. NULL is a query that still runs: it has not ended.
func instant(v any) (engine.Time, error) {
	switch v := v.(type) {
	case nil:
		return engine.Time{}, nil
	case time.Time:
		return engine.At(v), nil
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999 -0700",
			"2006-01-02 15:04:05.999999999 -07:00", "2006-01-02 15:04:05.999999999Z07:00"} {
			if t, err := time.Parse(layout, v); err == nil {
				return engine.At(t), nil
			}
		}
		return engine.Time{}, fmt.Errorf("%.40q is not a time", v)
	}
	return engine.Time{}, fmt.Errorf("a %T is not a time", v)
}
