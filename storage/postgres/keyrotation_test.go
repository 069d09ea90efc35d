package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/keyring"
	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
)

const rotated = "postgres://ada:s3cr3t@db.example:5432/shop"

// openFile opens a store with the keys of a file.
func openFile(t testing.TB, dsn, file string) (*storagepostgres.Store, *keyring.Keyring) {
	t.Helper()
	t.Setenv(keyring.KeyEnv, "")
	keys, err := keyring.Open(file)
	must(t, err)
	s, err := storagepostgres.Open(t.Context(), dsn, keys, postgres.NewDriver())
	must(t, err)
	t.Cleanup(s.Close)
	return s, keys
}

// sealEverything writes something into each place that is sealed.
func sealEverything(t testing.TB, s *storagepostgres.Store) {
	t.Helper()
	ctx := t.Context()
	_, err := s.SaveConnection(ctx, store.Connection{Name: "shop", Driver: "postgres", DSN: rotated})
	must(t, err)
	config := engine.Scenario{Name: "orders"}
	config.Target.Connection = engine.ConnectionRef{Driver: "postgres", DSN: rotated}
	config.Rules = []engine.Rule{
		{Name: "slow", When: "SELECT 1", Do: engine.RuleWebhook, URL: "https://hooks.example/s3cr3t"},
	}
	made, err := s.CreateTemplate(ctx, store.Template{Name: "orders", Config: config})
	must(t, err)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "sealed", ResultID: "sealed", Scenario: made.Config}))
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "sealed", RunID: "sealed",
		Plan: &engine.Plan{Pools: []engine.Pool{{Table: "t", Rows: [][]any{{"s3cr3t"}}}}}}))
	for _, name := range []string{"notifications", "totp:ada"} {
		_, err := s.SaveSetting(ctx, store.Setting{Name: name, Value: []byte(`{}`), Secret: []byte("s3cr3t")})
		must(t, err)
	}
	_, err = s.EnsureNodeAuthority(ctx, func() (store.NodeAuthority, error) {
		return store.NodeAuthority{Certificate: []byte("c"), Key: []byte("s3cr3t")}, nil
	})
	must(t, err)
	const statement = "CREATE SINK alarm(n INT64) TYPE WEBHOOK SET('https://hooks.example/s3cr3t' AS SINK.URL)"
	parsed, err := sql.Parse(statement)
	must(t, err)
	must(t, s.Streams().ChangeCatalog(ctx, catalog.Scope{}, func(to *catalog.Catalog) error {
		to.SetDefaultHost("server", 16)
		_, err := to.Apply(statement, parsed[0])
		return err
	}))
}

// opensEverything reads all of it.
func opensEverything(t testing.TB, s *storagepostgres.Store) {
	t.Helper()
	ctx := t.Context()
	run, err := s.Run(ctx, "sealed")
	must(t, err)
	template, err := s.TemplateByName(ctx, "orders")
	must(t, err)
	for what, ref := range map[string]engine.ConnectionRef{"connection": {Name: "shop"},
		"template": template.Config.Target.Connection, "run": run.Scenario.Target.Connection} {
		if _, dsn, err := s.OpenDSN(ctx, ref); err != nil || dsn.Reveal() != rotated {
			t.Errorf("%s: %q, %v", what, dsn.Reveal(), err)
		}
	}
	for what, rule := range map[string]engine.Rule{"template": template.Config.Rules[0], "run": run.Scenario.Rules[0]} {
		if url, err := s.OpenURL(ctx, rule); err != nil || !strings.HasSuffix(url.Reveal(), "s3cr3t") {
			t.Errorf("the rule of the %s: %v", what, err)
		}
	}
	results, err := s.Results(ctx, "sealed")
	must(t, err)
	if p := results[0].Plan; len(p.Pools) != 1 || p.Pools[0].Rows[0][0] != "s3cr3t" {
		t.Errorf("the sampled rows: %+v", p)
	}
	for _, name := range []string{"notifications", "totp:ada"} {
		if v, err := s.Setting(ctx, name); err != nil || string(v.Secret) != "s3cr3t" {
			t.Errorf("%s: %q, %v", name, v.Secret, err)
		}
	}
	if a, err := s.EnsureNodeAuthority(ctx, nil); err != nil || string(a.Key) != "s3cr3t" {
		t.Errorf("the authority: %v", err)
	}
	contents, err := s.Streams().CatalogContents(ctx)
	must(t, err)
	if len(contents.Sinks) != 1 || contents.Sinks[0].Config.String("SINK.URL") != "https://hooks.example/s3cr3t" {
		t.Errorf("the sink: %v", contents.Sinks)
	}
}

func keysOf(counts []storagepostgres.SealedCount) map[string]int {
	of := map[string]int{}
	for _, c := range counts {
		of[c.Key] += c.Count
	}
	return of
}

// TestEverythingIsSealedAgain rotates the key under two servers: what was sealed opens with the new key alone.
func TestEverythingIsSealedAgain(t *testing.T) {
	ctx, dsn, file := t.Context(), newDatabase(t), filepath.Join(t.TempDir(), "key")
	s, keys := openFile(t, dsn, file)
	sealEverything(t, s)
	h := newSecrets(t, s, dsn)
	first := keys.FirstID()
	counts, err := s.CountSealed(ctx)
	must(t, err)
	if of := keysOf(counts); len(of) != 1 || of[first] < 10 || len(counts) != 8 {
		t.Fatalf("sealed: %v", counts)
	}
	other, _ := openFile(t, dsn, file)
	next, err := keys.AddKey()
	must(t, err)
	must(t, s.BeginKeyRotation(ctx, next))
	if err := s.BeginKeyRotation(ctx, next); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("begun twice: %v", err)
	}
	for name, o := range map[string]*storagepostgres.Store{"one": s, "two": other} {
		must(t, o.AnnounceKeys(ctx, name))
	}
	servers, err := s.KeyServers(ctx)
	must(t, err)
	for _, o := range servers {
		if !slices.Equal(o.Keys, []string{first, next}) {
			t.Errorf("server %s has %v", o.Server, o.Keys)
		}
	}
	must(t, s.UseNextKey(ctx))
	must(t, other.AnnounceKeys(ctx, "two"))
	if servers, err = s.KeyServers(ctx); err != nil || servers[1].Keys[0] != next {
		t.Errorf("servers: %v, %v", servers, err)
	}
	opensEverything(t, other) // while some is sealed under each
	_, err = other.SaveConnection(ctx, store.Connection{Name: "new", Driver: "postgres", DSN: rotated})
	must(t, err)
	for range 2 {
		all, err := s.Reseal(ctx, func(storagepostgres.Resealed) {})
		must(t, err)
		for _, r := range all {
			if r.Changed+len(r.Failed) > 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	// What was sealed before the switch and is committed later is waited for, and counted.
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.Begin(ctx)
	must(t, err)
	old, err := keyring.OpenExisting(file) // nobody has told it which key seals
	must(t, err)
	write := func(tx interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}, name string) error {
		_, err := tx.Exec(
			ctx,
			"INSERT INTO server_settings (setting_name, setting_value, secret_sealed) VALUES ($1, '{}', $2)",
			name,
			old.Seal([]byte("x"), "setting:"+name),
		)
		return err
	}
	must(t, write(tx, "late"))
	committed := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { committed <- tx.Commit(ctx) })
	if left, err := s.EndKeyRotation(ctx, false); err != nil || left != 1 {
		t.Errorf("ended under a late writer: %d left, %v", left, err)
	}
	must(t, <-committed)
	if r, err := s.KeyRotation(ctx); err != nil || r.Next != next || len(r.Retired) > 0 {
		t.Errorf("it has ended: %+v, %v", r, err)
	}
	_, err = s.Reseal(ctx, func(storagepostgres.Resealed) {})
	must(t, err)
	if left, err := s.EndKeyRotation(ctx, false); err != nil || left != 0 {
		t.Errorf("%d left, %v", left, err)
	}
	if r, err := s.KeyRotation(ctx); err != nil || r.Next != "" || !slices.Equal(r.Retired, []string{first}) {
		t.Errorf("%+v, %v", r, err)
	}
	// A server that comes back from a silence is refused, wherever it writes.
	if err := write(conn, "later"); err == nil || !strings.Contains(err.Error(), "LS007") {
		t.Errorf("sealed under the earlier key: %v", err)
	}
	for table, column := range map[string]string{"test_templates": "config", "run_status": "scenario_config",
		"sinks": "config", "test_results": "plan", "connections": "dsn_sealed", "node_authority": "key_sealed",
		"hash_keys": "key_sealed"} {
		value := fmt.Sprintf("%q", old.Seal([]byte("x"), "any"))
		if column == "dsn_sealed" || column == "key_sealed" {
			value = strings.Trim(value, `"`)
		} else {
			value = `{"target": {"dsn_sealed": ` + value + `}}`
		}
		if _, err := conn.Exec(ctx, "UPDATE "+table+" SET "+column+" = $1", value); err == nil ||
			!strings.Contains(err.Error(), "LS007") {
			t.Errorf("into %s: %v", table, err)
		}
	}
	opensEverything(t, other)
	counts, err = s.CountSealed(ctx)
	must(t, err)
	if of := keysOf(counts); len(of) != 1 || of[next] == 0 {
		t.Errorf("sealed: %v", counts)
	}
	must(t, keys.MoveFirst(next))
	if keys.FirstID() != next {
		t.Error("the new key is not the first one")
	}
	text, err := os.ReadFile(file)
	must(t, err)
	line, _, _ := strings.Cut(string(text), "\n")
	must(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	alone, ring := openFile(t, dsn, file)
	if !slices.Equal(ring.IDs(), []string{next}) {
		t.Errorf("keys %v", ring.IDs())
	}
	opensEverything(t, alone)
	h.check(t, alone, true)
	// Where the key is not there, that is said before anything is done.
	strange, err := keyring.Open(filepath.Join(t.TempDir(), "wrong"))
	must(t, err)
	wrong, err := storagepostgres.OpenUnproved(ctx, dsn, strange)
	must(t, err)
	defer wrong.Close()
	if err := wrong.CheckKeys(counts); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), next) {
		t.Errorf("a wrong key: %v", err)
	}
}

// TestWhatIsDamagedIsNamed: one row that does not open keeps nothing else from being sealed again.
func TestWhatIsDamagedIsNamed(t *testing.T) {
	ctx, dsn, file := t.Context(), newDatabase(t), filepath.Join(t.TempDir(), "key")
	s, keys := openFile(t, dsn, file)
	sealEverything(t, s)
	conn, err := pgx.Connect(ctx, dsn)
	must(t, err)
	defer conn.Close(ctx)
	// A text that was moved from elsewhere opens for nobody.
	_, err = conn.Exec(ctx, `UPDATE server_settings SET secret_sealed = (SELECT dsn_sealed FROM connections)
		WHERE setting_name = 'totp:ada'`)
	must(t, err)
	next, err := keys.AddKey()
	must(t, err)
	must(t, s.BeginKeyRotation(ctx, next))
	must(t, s.UseNextKey(ctx))
	all, err := s.Reseal(ctx, func(storagepostgres.Resealed) {})
	must(t, err)
	failed, done := 0, 0
	for _, r := range all {
		failed, done = failed+len(r.Failed), done+r.Done
		if len(r.Failed) > 0 && !slices.Equal(r.Failed, []string{"totp:ada"}) {
			t.Errorf("%+v", r)
		}
	}
	if failed != 1 || done < 6 {
		t.Errorf("%d failed and %d done: %+v", failed, done, all)
	}
}

// TestEachPlaceThatSealsIsKnown: a new call that seals needs a line in sealedPlaces, or a rotation forgets it.
func TestEachPlaceThatSealsIsKnown(t *testing.T) {
	known := map[string]int{"connections.go": 3, "secrets.go": 2, "catalogsecrets.go": 1, "settings.go": 1,
		"nodeaccess.go": 1, "hashes.go": 1, "sealedrows.go": 1, "pools.go": 1}
	found := map[string]int{}
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		must(t, err)
		if n := strings.Count(string(text), "eys.Seal("); n > 0 {
			found[file] = n
		}
	}
	if !maps.Equal(known, found) {
		t.Errorf("calls that seal: %s; add what is new to sealedPlaces, to sealEverything and here", fmt.Sprint(found))
	}
}
