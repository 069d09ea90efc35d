package derivedtest

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// InsensitiveTables are the tables in which Differences finds nothing though each of the runs has become another: one
// of its operations is missing, that has failed where one has, its polls have one more statement that runs, it was
// faster and dearer. What is compared with so little is compared with nothing.
func InsensitiveTables(ctx context.Context, conn *pgx.Conn, runs []Run) (blind []string, err error) {
	others := make([]Run, len(runs))
	for i, r := range runs {
		others[i] = variant(r)
	}
	found, err := Differences(ctx, conn, others)
	if err != nil {
		return nil, err
	}
	for _, t := range expected(runs) {
		if !slices.ContainsFunc(found, func(s string) bool {
			return strings.HasPrefix(s, t.name+" ") || strings.HasPrefix(s, t.name+":")
		}) {
			blind = append(blind, t.name)
		}
	}
	return blind, nil
}

// variant is a run of which a little is not as it was.
func variant(r Run) Run {
	counts := func(e Execution) bool { return !e.Warmup && e.Position == 0 }
	r.Executions = slices.Clone(r.Executions)
	i := slices.IndexFunc(r.Executions, func(e Execution) bool { return counts(e) && !e.Success })
	if i < 0 {
		i = slices.IndexFunc(r.Executions, counts)
	}
	if i >= 0 {
		r.Executions = slices.Delete(r.Executions, i, i+1)
	}
	slowest := -1
	for j, e := range r.Executions {
		if counts(e) && (slowest < 0 || e.ElapsedMs > r.Executions[slowest].ElapsedMs) {
			slowest = j
		}
	}
	if slowest >= 0 {
		r.Executions[slowest].ElapsedMs *= 1.5
	}
	r.Warehouse = slices.Clone(r.Warehouse)
	for j := range r.Warehouse {
		r.Warehouse[j].Running++
	}
	if r.Summary != nil {
		s := *r.Summary
		if s.QPS != nil {
			s.QPS = new(*s.QPS * 1.1)
		}
		if s.Cost != nil {
			c := *s.Cost
			c.Price *= 2
			s.Cost = &c
		}
		r.Summary = &s
	}
	return r
}
