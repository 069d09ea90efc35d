package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// shopDatabase is a database of a user, and the program beside it.
type shopDatabase struct {
	*testing.T
	db    *pgx.Conn
	dsn   string // of the user whom runs connect as
	store []string
	dir   string
}

func newShopDatabase(t *testing.T) *shopDatabase {
	t.Helper()
	server := pgtest.Start(t)
	control, load := postgrestest.NewControl(t), server.NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), load)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	dir := t.TempDir()
	return &shopDatabase{T: t, db: conn, dsn: load, dir: dir,
		store: []string{"--database-url", control, "--data-dir", filepath.Join(dir, "data"), "--calibrate=off", "--quiet"}}
}

func (s *shopDatabase) exec(statements ...string) {
	s.Helper()
	for _, sql := range statements {
		if _, err := s.db.Exec(s.Context(), sql); err != nil {
			s.Fatalf("%s: %v", sql, err)
		}
	}
}

// drive is loadstone run. doc is what --out has.
func (s *shopDatabase) drive(template string, doc any, flags ...string) (code int, message string) {
	s.Helper()
	path, out := filepath.Join(s.dir, "template.yaml"), filepath.Join(s.dir, "out.json")
	_ = os.Remove(out)
	if err := os.WriteFile(path, []byte(template), 0o600); err != nil {
		s.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	args := append(append([]string{"run", path, "--out", out}, s.store...), flags...)
	code = run(s.Context(), func() {}, args, &stdout, &stderr)
	message = stdout.String() + stderr.String()
	if b, err := os.ReadFile(out); err == nil && doc != nil {
		if err := json.Unmarshal(b, doc); err != nil {
			s.Fatal(err)
		}
	}
	return code, message
}

// triedBefore is how many operations of a statement are tried before a run.
const triedBefore = "20"

// template is a short run of mix.
func (s *shopDatabase) template(table, params, more string) string {
	return "name: shop\ntarget: {connection: {driver: postgres, dsn: \"" + s.dsn + "\"}, adapter: postgres, table_name: " +
		table + "}\n" +
		"workload: {plugin: mix, concurrent_connections: 4, duration_seconds: 1, warmup_seconds: 0, params: " + params +
		"}\n" + more
}

// TestAKindThatRowSecurityRefusesExits3 through the whole program: what is refused at once is named before the run, and
// of what is refused later one of the template's own thresholds may allow it; the figures are no better for that.
func TestAKindThatRowSecurityRefusesExits3(t *testing.T) {
	t.Parallel()
	s := newShopDatabase(t)
	s.exec("CREATE TABLE orders (id bigint PRIMARY KEY, note text)", "CREATE SEQUENCE tries",
		"INSERT INTO orders SELECT g, 'x' FROM generate_series(1, 1000) g",
		"ALTER TABLE orders ENABLE ROW LEVEL SECURITY", "ALTER TABLE orders FORCE ROW LEVEL SECURITY",
		"CREATE POLICY r ON orders FOR SELECT USING (true)", "CREATE POLICY w ON orders FOR INSERT WITH CHECK (false)",
		"DROP ROLE IF EXISTS clerk", "CREATE ROLE clerk", "GRANT SELECT, INSERT ON orders TO clerk",
		"GRANT USAGE ON SEQUENCE tries TO clerk")
	s.dsn += " role=clerk"
	t.Cleanup(func() {
		_, _ = s.db.Exec(context.Background(), "DROP OWNED BY clerk; DROP ROLE clerk")
	})
	template := "{weights: {POINT_LOOKUP: 9, INSERT: 1}}"
	code, message := s.drive(s.template("orders", template, ""), nil, "--allow-writes")
	if code != terminal.ExitUsage || !strings.Contains(message, "row-level security policy") ||
		!strings.Contains(message, "weights.INSERT") {
		t.Errorf("refused at once: exit %d\n%s", code, message)
	}
	// What is tried before the run is let in.
	s.exec("ALTER POLICY w ON orders WITH CHECK (nextval('tries') <= " + triedBefore + ")")
	for _, c := range []struct {
		thresholds string
		code       int
		failed     int
	}{
		{"", terminal.ExitThresholds, 1},
		{"thresholds: [\"INSERT.error_rate <= 1\"]", terminal.ExitPassed, 0},
	} {
		var sum engine.Summary
		s.exec("ALTER SEQUENCE tries RESTART")
		code, message := s.drive(s.template("orders", template, c.thresholds), &sum, "--allow-writes")
		failed := 0
		for _, th := range sum.Thresholds {
			if !th.Passed {
				failed++
			}
		}
		inserts := sum.ByKind[engine.KindInsert]
		if code != c.code || failed != c.failed || inserts == nil || inserts.Errors != inserts.Count ||
			sum.Validity != engine.VerdictDegraded || !strings.Contains(message, "kind_failed") {
			t.Errorf("%q: exit %d, %s, %+v, %+v\n%s", c.thresholds, code, sum.Validity, sum.Thresholds, inserts, message)
		}
		if c.failed > 0 && !strings.Contains(message, "INSERT.error_rate < 1") {
			t.Errorf("%q: the threshold is not named:\n%s", c.thresholds, message)
		}
	}
}

// TestAllowWritesInAMatrix: the flag is for all of its targets, and without it the first
// one that would be written to ends the matrix.
func TestAllowWritesInAMatrix(t *testing.T) {
	t.Parallel()
	s := newShopDatabase(t)
	s.exec("CREATE TABLE orders (id bigint PRIMARY KEY, note text)",
		"INSERT INTO orders SELECT g, 'x' FROM generate_series(1, 1000) g",
		"CREATE TABLE archive (LIKE orders INCLUDING ALL)",
		"INSERT INTO archive SELECT * FROM orders")
	target := "{connection: {driver: postgres, dsn: \"" + s.dsn + "\"}, adapter: postgres, table_name: "
	template := "name: shop\nmatrix:\n  targets:\n  - " + target + "orders}\n  - " + target + "archive}\n" +
		"workload: {plugin: mix, concurrent_connections: 2, duration_seconds: 1, warmup_seconds: 0, params: {weights: " +
		"{UPDATE: 1}}}\n"
	changed := func() (n int) {
		if err := s.db.QueryRow(s.Context(),
			"SELECT count(*) FROM (SELECT note FROM orders UNION ALL SELECT note FROM archive) s WHERE note <> 'x'").
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if code, message := s.drive(template, nil); code != terminal.ExitUsage || changed() != 0 ||
		!strings.Contains(message, "--allow-writes") {
		t.Errorf("without leave: exit %d, %d rows changed\n%s", code, changed(), message)
	}
	var report struct {
		Targets []struct {
			Summary *engine.Summary `json:"summary"`
		} `json:"targets"`
	}
	code, output := s.drive(template, &report, "--allow-writes")
	if code != terminal.ExitPassed || changed() == 0 || len(report.Targets) != 2 {
		t.Fatalf("with leave: exit %d, %d rows changed\n%s", code, changed(), output)
	}
	for i, r := range report.Targets {
		if r.Summary == nil || r.Summary.Errors.Count > 0 || r.Summary.Writes == 0 {
			t.Errorf("target %d has no figures, or errors", i)
		}
	}
}

// TestLatestKeysOfRefusedInsertsAreNotLookedFor, whether the INSERT fails or a trigger leaves its row out.
func TestLatestKeysOfRefusedInsertsAreNotLookedFor(t *testing.T) {
	t.Parallel()
	s := newShopDatabase(t)
	s.exec("CREATE SEQUENCE tries")
	s.exec("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
		"IF nextval('tries') <= " + triedBefore + " OR NEW.id % 8 = 1 THEN RETURN NEW; " +
		"ELSIF TG_TABLE_NAME = 'loud' THEN RAISE EXCEPTION 'no'; END IF; RETURN NULL; END $$")
	for _, table := range []string{"loud", "silent"} {
		s.exec("CREATE TABLE "+table+" (id bigint PRIMARY KEY, note text)",
			"INSERT INTO "+table+" SELECT g, 'x' FROM generate_series(1, 100) g",
			"CREATE TRIGGER t BEFORE INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION refuse()",
			"ALTER SEQUENCE tries RESTART")
		var sum engine.Summary
		code, message := s.drive(s.template(table, "{weights: {POINT_LOOKUP: 1, INSERT: 1}, keys: latest}", ""), &sum,
			"--allow-writes")
		lookups, inserts := sum.ByKind[engine.KindPointLookup], sum.ByKind[engine.KindInsert]
		if code != terminal.ExitPassed || lookups == nil || inserts == nil {
			t.Fatalf("%s: exit %d\n%s", table, code, message)
		}
		if left := inserts.Errors + inserts.NoRows; left < inserts.Count/2 {
			t.Errorf("%s: only %d of %d were refused", table, left, inserts.Count)
		}
		t.Logf("%s: %d lookups, %d got another key", table, lookups.Count, sum.KeysReplaced)
		if lookups.NoRows > lookups.Count/50 || sum.KeysReplaced < lookups.Count/4 ||
			!strings.Contains(message, "looked for other rows instead") {
			t.Errorf("%s: %d of %d lookups found nothing, %d got another key\n%s", table, lookups.NoRows, lookups.Count,
				sum.KeysReplaced, message)
		}
		if (inserts.NoRows > 0) != (table == "silent") ||
			strings.Contains(message, "inserted no row") != (table == "silent") {
			t.Errorf("%s: %+v\n%s", table, inserts, message)
		}
	}
}
