package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
)

// TestLargeSampledRowsComeBack: they were cut at 64 MiB as they were read, and then taken for those of another key.
func TestLargeSampledRowsComeBack(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	must(t, s.CreateRun(ctx, newRun("r")))
	text := strings.Repeat("abcdefgh", 1<<17)
	rows := make([][]any, 70)
	for i := range rows {
		rows[i] = []any{text}
	}
	plan := &engine.Plan{Driver: "postgres", Pools: []engine.Pool{{Table: "t", Columns: []string{"c"}, Rows: rows}}}
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r", RunID: "r", Plan: plan}))
	full, err := s.Results(ctx, "r")
	must(t, err)
	if p := full[0].Plan; p.PoolsUnreadable != "" || len(p.Pools) != 1 || len(p.Pools[0].Rows) != 70 ||
		p.Pools[0].Rows[69][0] != text {
		t.Errorf("70 MiB of rows come back as %d pools, unreadable: %q", len(p.Pools), p.PoolsUnreadable)
	}
}

// TestOneRunDoesNotKeepOthersFromBeingSealed: one whose rows cannot be parsed is named, and left.
func TestOneRunDoesNotKeepOthersFromBeingSealed(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer func() { _ = conn.Close(ctx) }()
	for _, id := range []string{"a", "b", "c"} {
		must(t, s.CreateRun(ctx, newRun(id)))
		must(t, s.SaveResult(ctx, engine.RunResult{ResultID: id, RunID: id, Plan: &engine.Plan{Driver: "postgres"}}))
	}
	_, err = conn.Exec(ctx, `UPDATE test_results SET plan = plan || jsonb_build_object('pools', CASE test_id
		WHEN 'b' THEN '{"not":"a list"}' ELSE '[{"table":"people","columns":["email"],"rows":[["eve"]]}]' END::jsonb)`)
	must(t, err)
	n, err := s.SealPools(ctx)
	if n != 2 || err == nil || !strings.Contains(err.Error(), "run b") {
		t.Errorf("%d runs were sealed, %v", n, err)
	}
	for _, id := range []string{"a", "c"} {
		full, err := s.Results(ctx, id)
		must(t, err)
		if r := full[0]; r.Plan.PoolsUnreadable != "" || len(r.Plan.Pools) != 1 {
			t.Errorf("%s: %+v", r.ResultID, r.Plan)
		}
	}
}

// TestSampledRowsAreSealed: values of the target's rows are in no row of the control store, and come back for who makes
// values of them alone. What an earlier version has left in plain is sealed once.
func TestSampledRowsAreSealed(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	must(t, s.CreateRun(ctx, newRun("r")))
	const canary = "eve@canary.example"
	plan := &engine.Plan{Driver: "postgres", Statements: []engine.Statement{{ID: "read"}}, KeySlots: 4,
		Pools: []engine.Pool{{Table: "people", Columns: []string{"email"}, Rows: [][]any{{canary}, {"ann@canary.example"}}}}}
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r", RunID: "r", Plan: plan}))
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer func() { _ = conn.Close(ctx) }()
	stored := func() (text string) {
		t.Helper()
		must(t, conn.QueryRow(ctx, "SELECT plan::text FROM test_results WHERE test_id = 'r'").Scan(&text))
		return text
	}
	check := func() {
		t.Helper()
		if text := stored(); strings.Contains(text, "canary") || !strings.Contains(text, "pools_sealed") {
			t.Errorf("the store has %s", text)
		}
		full, err := s.Results(ctx, "r")
		must(t, err)
		same(t, "plan", full[0].Plan, plan)
		shown, err := s.Overviews(ctx, "r")
		must(t, err)
		if shown[0].Plan.Pools != nil || shown[0].Plan.KeySlots != 4 || len(shown[0].Plan.Statements) != 1 {
			t.Errorf("an overview has %+v", shown[0].Plan)
		}
	}
	check()
	_, err = conn.Exec(ctx, `UPDATE test_results SET plan = plan - 'pools_sealed' || jsonb_build_object('pools',
		'[{"table":"people","columns":["email"],"rows":[["`+canary+`"],["ann@canary.example"]]}]'::jsonb)`)
	must(t, err)
	for _, want := range []int{1, 0} {
		if n, err := s.SealPools(ctx); err != nil || n != want {
			t.Errorf("%d runs were sealed, %v; want %d", n, err, want)
		}
		check()
	}
	// Under another key the run is read, without them.
	_, err = conn.Exec(ctx, `UPDATE test_results SET plan = jsonb_set(plan, '{pools_sealed}', '"another"')`)
	must(t, err)
	lost, err := s.Results(ctx, "r")
	must(t, err)
	if p := lost[0].Plan; p.Pools != nil || !strings.Contains(p.PoolsUnreadable, "under a key") {
		t.Errorf("without the key the plan is %+v", p)
	}
}
