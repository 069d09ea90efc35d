package snowflake

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(plainAccountVariable) != "" {
		servePlainAccount()
		return
	}
	goleak.VerifyTestMain(pgtest.M{M: m}, targettest.SnowflakeDriverLeak())
}

func openDSN(t testing.TB, dsn string, cfg target.Config) *database {
	t.Helper()
	cfg.DSN = secret.New(dsn)
	db, err := NewDriver().Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db.(*database)
}

var bothKinds = []engine.Statement{
	{ID: "read", SQL: "SELECT a FROM t WHERE id = ?", Binds: []engine.Bind{{Type: engine.TypeI64}},
		Columns: []string{"a"}},
	{ID: "write", SQL: "UPDATE t SET a = ? WHERE id = ?", Writes: true,
		Binds: []engine.Bind{{Type: engine.TypeI64}, {Type: engine.TypeText}}, BindOrder: []int{1, 0}},
}

func connect(t testing.TB, db *database) target.Conn {
	t.Helper()
	c, err := db.Connect(t.Context(), bothKinds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func exec(c target.Conn, statement uint16, args ...any) (target.Result, error) {
	b, op := targettest.Batch(statement, args...)
	var res target.Result
	err := c.Exec(context.Background(), b, op, &res)
	return res, err
}

// TestSessionsAreSetUp looks at what a session is given at its log-in, and that
// nothing else is asked of the account.
func TestSessionsAreSetUp(t *testing.T) {
	a := newAccount(t)
	db := openDSN(t, a.dsn(), target.Config{StatementTimeout: 1500 * time.Millisecond, RunID: "run-1",
		WorkerID: "worker-0", Warehouse: "OTHER", Session: []string{"ALTER SESSION SET READ_LATEST_WRITES = TRUE"}})
	c := connect(t, db)
	if res, err := exec(c, 0, int64(1)); err != nil || res.Rows != 1 || res.QueryID.String() != queryID(1) {
		t.Fatalf("%+v, %v", res, err)
	}
	_ = c.Close()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	in := a.logins[0]
	params := in["SESSION_PARAMETERS"].(map[string]any)
	for name, want := range map[string]any{"USE_CACHED_RESULT": "false", "TIMEZONE": "UTC",
		"STATEMENT_TIMEOUT_IN_SECONDS": "2", "ABORT_DETACHED_QUERY": "true",
		"CLIENT_TELEMETRY_ENABLED": "false", "CLIENT_STAGE_ARRAY_BINDING_THRESHOLD": "0",
		"CLIENT_VALIDATE_DEFAULT_PARAMETERS": true} {
		if params[name] != want {
			t.Errorf("%s is %v, want %v", name, params[name], want)
		}
	}
	var tag map[string]string
	if err := json.Unmarshal([]byte(fmt.Sprint(params["QUERY_TAG"])), &tag); err != nil || tag["run_id"] != "run-1" ||
		tag["worker"] != "worker-0" || tag["app"] != "loadstone" {
		t.Errorf("the query tag is %v, %v", params["QUERY_TAG"], err)
	}
	environment := in["CLIENT_ENVIRONMENT"].(map[string]any)
	if platform := fmt.Sprint(environment["PLATFORM"]); platform != "[disabled]" {
		t.Errorf("the platform was detected: %s", platform)
	}
	if os.Getenv("SF_TELEMETRY_DISABLE_CONNECTION_SHAPE") != "true" {
		t.Error("the form of the connection is noted for telemetry")
	}
	if e := fmt.Sprint(environment["CORE_LOAD_ERROR"]); !strings.Contains(e, "SF_DISABLE_MINICORE") &&
		!strings.Contains(e, "minicore_disabled") {
		t.Errorf("minicore: %s", e)
	}
	// The first one asks what the session's parameters are.
	want := []string{
		loginPath,
		"/queries/v1/query-request",
		"/queries/v1/query-request",
		"/queries/v1/query-request",
		"/queries/v1/query-request",
		"/queries/v1/query-request",
		sessionPath,
	}
	if !slices.Equal(a.paths, want) {
		t.Errorf("the account was asked for %q", a.paths)
	}
	if a.requests[0].SQLText != "ALTER SESSION SET READ_LATEST_WRITES = TRUE" || !a.requests[1].DescribeOnly ||
		!a.requests[2].DescribeOnly {
		t.Errorf("%+v", a.requests)
	}
	if a.open.Load() != 0 {
		t.Errorf("%d sessions are left", a.open.Load())
	}
}

func TestSignIns(t *testing.T) {
	a := newAccount(t)
	key := url.QueryEscape(privateKey())
	for query, want := range map[string]map[string]any{
		"": {"LOGIN_NAME": "tester", "PASSWORD": "se:cret"},
		"&authenticator=snowflake_jwt&private_key=" + key: {"AUTHENTICATOR": "SNOWFLAKE_JWT", "PASSWORD": nil},
		"&authenticator=oauth&token=T":                    {"AUTHENTICATOR": "OAUTH", "TOKEN": "T", "PASSWORD": nil},
		"&authenticator=programmatic_access_token&token=P": {"AUTHENTICATOR": "PROGRAMMATIC_ACCESS_TOKEN", "TOKEN": "P",
			"PASSWORD": nil},
	} {
		a.logins = nil
		if _, err := openDSN(t, a.dsn()+query, target.Config{}).Query(t.Context(), "SELECT 1"); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if a.logins[0][name] != value {
				t.Errorf("%q: %s is %v, want %v", query, name, a.logins[0][name], value)
			}
		}
	}
}

// TestNothingButTheAccountIsContacted opens sessions, runs statements and fails
// them while the environment tempts gosnowflake to talk to others, and looks at
// every request that leaves.
func TestNothingButTheAccountIsContacted(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", home)
	t.Setenv("GITHUB_ACTIONS", "true")
	config := filepath.Join(home, "sf_client_config.json")
	if err := os.WriteFile(config, []byte(`{"common": {"log_level": "TRACE", "log_path": "`+home+`"}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SF_CLIENT_CONFIG_FILE", config)
	a := newAccount(t)
	a.respond(func(_ http.ResponseWriter, _ *http.Request, q request) map[string]any {
		switch {
		case strings.Contains(q.SQLText, "fail"):
			return refusal(100038, "22018", "Numeric value 'x' is not recognized")
		case strings.Contains(q.SQLText, "parts"):
			// A result whose parts are somewhere else.
			r := rows([]string{"A:text"}, []any{"1"})
			r["data"].(map[string]any)["total"] = 1000
			r["data"].(map[string]any)["chunks"] = []map[string]any{{"url": "https://evil.example.com/part", "rowCount": 999,
				"uncompressedSize": 10, "compressedSize": 10}}
			return r
		}
		return rows([]string{"A:text"}, []any{"1"})
	})
	var mu sync.Mutex
	hosts := map[string]int{}
	opened, err := snowflakeDriver{report: func(host string) { mu.Lock(); hosts[host]++; mu.Unlock() }}.Open(
		target.Config{DSN: secret.New(a.dsn())})
	if err != nil {
		t.Fatal(err)
	}
	db := opened.(*database)
	if _, err := db.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := db.Connect(t.Context(), append(bothKinds, engine.Statement{ID: "parts", SQL: "SELECT parts"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec(c, 0, int64(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := exec(c, 2); err == nil || db.Classify(err).Code != codeForbidden || c.Broken() {
		t.Errorf("a part of a result came from anywhere: %v", err)
	}
	if _, err := db.Query(t.Context(), "SELECT fail"); err == nil {
		t.Error("it did not fail")
	}
	for _, sql := range []string{"PUT file:///etc/passwd @~", "GET @~ file:///tmp/x"} {
		if _, err := db.Query(t.Context(), sql); !errors.Is(err, errFileTransfer) {
			t.Errorf("%s: %v", sql, err)
		}
		if err := db.Exec(t.Context(), sql); !errors.Is(err, errFileTransfer) {
			t.Errorf("%s: %v", sql, err)
		}
		if _, err := db.Connect(t.Context(), []engine.Statement{{ID: "x", SQL: sql}}); !errors.Is(err, errFileTransfer) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	_ = c.Close()
	_ = db.Close()
	delete(hosts, strings.TrimPrefix(a.URL, "http://"))
	delete(hosts, "evil.example.com") // refused above
	if len(hosts) > 0 {
		t.Errorf("requests for %v", hosts)
	}
	if slices.Contains(a.paths, telemetryPath) {
		t.Error("telemetry was sent")
	}
	var left []string
	_ = filepath.Walk(home, func(path string, info os.FileInfo, _ error) error {
		if info != nil && !info.IsDir() && path != config {
			left = append(left, path)
		}
		return nil
	})
	if len(left) > 0 {
		t.Errorf("files were written: %q", left)
	}
}

// TestSessionTokensAreRenewed: an expired session token is renewed inside the
// execution; a session that cannot be renewed is broken.
func TestSessionTokensAreRenewed(t *testing.T) {
	a := newAccount(t)
	db := openDSN(t, a.dsn(), target.Config{})
	conn := connect(t, db)
	a.respond(func(_ http.ResponseWriter, _ *http.Request, q request) map[string]any {
		if !strings.HasPrefix(q.token, "renewed") {
			return refusal(numberSessionExpired, "08001", "Session token has expired.")
		}
		return rows([]string{"A:text"}, []any{"1"})
	})
	if res, err := exec(conn, 0, int64(1)); err != nil || res.Rows != 1 || a.renewals.Load() != 1 || conn.Broken() {
		t.Errorf("%+v, %v, %d renewals", res, err, a.renewals.Load())
	}
	// Cold sessions that have ended in the meantime are replaced.
	a.respond(nil)
	if _, err := db.Query(t.Context(), "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	sessions := a.sessions.Load()
	a.respond(func(_ http.ResponseWriter, _ *http.Request, q request) map[string]any {
		if q.token != fmt.Sprintf("t%d", sessions+1) {
			return refusal(numberSessionGone, "08001", "Session no longer exists.")
		}
		return rows([]string{"A:text"}, []any{"1"})
	})
	if _, err := db.Query(t.Context(), "SELECT 1"); err != nil || a.sessions.Load() != sessions+1 {
		t.Errorf("%v, %d sessions more", err, a.sessions.Load()-sessions)
	}
}

// TestTimeoutsAndCancellationsAbort: each sends an abort-request, and the
// connection goes on; one that cannot be confirmed breaks it.
func TestTimeoutsAndCancellationsAbort(t *testing.T) {
	a := newAccount(t)
	a.respond(hang)
	db := openDSN(t, a.dsn(), target.Config{StatementTimeout: 100 * time.Millisecond})
	conn := connect(t, db)
	begin := time.Now()
	_, err := exec(conn, 0, int64(1))
	if e := db.Classify(err); e.Class != engine.ErrClassTimeout || conn.Broken() || a.aborts.Load() != 1 ||
		time.Since(begin) > 10*time.Second {
		t.Errorf("%+v, broken %v, %d aborts", e, conn.Broken(), a.aborts.Load())
	}
	patient := openDSN(t, a.dsn(), target.Config{})
	conn = connect(t, patient)
	done := make(chan error, 1)
	go func() { done <- second(exec(conn, 1, int64(1), "x")) }()
	waitFor(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		last := a.requests[len(a.requests)-1]
		return strings.HasPrefix(last.SQLText, "UPDATE") && !last.DescribeOnly
	})
	_ = conn.Cancel(t.Context())
	if e := db.Classify(<-done); e.Class != engine.ErrClassCancelled || conn.Broken() || a.aborts.Load() != 2 {
		t.Errorf("%+v, broken %v, %d aborts", e, conn.Broken(), a.aborts.Load())
	}
	a.deaf.Store(true)
	conn = connect(t, db)
	_, err = exec(conn, 0, int64(1))
	if e := db.Classify(err); e.Class != engine.ErrClassTimeout || !conn.Broken() {
		t.Errorf("an abort that failed: %+v, broken %v", e, conn.Broken())
	}
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !what(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about")
		}
	}
}

// TestBindsHaveTypes looks at what arrives for each kind of value, in the order
// that makes gosnowflake's markers matter.
func TestBindsHaveTypes(t *testing.T) {
	a := newAccount(t)
	a.respond(func(http.ResponseWriter, *http.Request, request) map[string]any { return affected(1) })
	db := openDSN(t, a.dsn(), target.Config{})
	var binds []engine.Bind
	at := time.Date(1969, 7, 20, 20, 17, 40, 1000, time.UTC)
	args := []any{int64(-7), 0.1, "täxt", []byte("a"), []byte{}, at, []byte{byte(5)}, []byte("bc"), nil, true, at,
		int64(1), 1e300, "", false}
	for range args {
		binds = append(binds, engine.Bind{Type: engine.TypeText})
	}
	conn, err := db.Connect(t.Context(), []engine.Statement{{ID: "w", SQL: "INSERT …", Writes: true, Binds: binds}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if res, err := exec(conn, 0, args...); err != nil || res.Rows != 1 {
		t.Fatal(res, err)
	}
	want := []string{"FIXED -7", "TEXT 0.1", "TEXT täxt", "BINARY 61", "TEXT ", "TIMESTAMP_NTZ -14182939999999000",
		"BINARY 05", "BINARY 6263", "TEXT <nil>", "BOOLEAN true",
		"TIMESTAMP_NTZ -14182939999999000", "FIXED 1", "TEXT 1e+300", "TEXT ", "BOOLEAN false"}
	got := a.requests[len(a.requests)-1].Bindings
	if len(got) != len(want) {
		t.Fatalf("%d binds of %d: %v", len(got), len(want), got)
	}
	for i, w := range want {
		if b := got[fmt.Sprint(i+1)]; b.Type+" "+fmt.Sprint(b.Value) != w {
			t.Errorf("bind %d is %s %v, want %s", i+1, b.Type, b.Value, w)
		}
	}
}

// TestQueryTypes: what preparation reads of Snowflake's types.
func TestQueryTypes(t *testing.T) {
	a := newAccount(t)
	a.respond(func(http.ResponseWriter, *http.Request, request) map[string]any {
		return rows([]string{"I:fixed", "N:fixed..........", "BIG:fixed", "R:real", "T:text", "B:boolean", "D:date",
			"TS:timestamp_ntz", "TZ:timestamp_tz", "V:variant", "X:binary", "NUL:text", "O:object"},
			[]any{"42", "12345678901234567890.1234567890", "99999999999999999999999999999999999999", "1.5e-7", "text", "1",
				"19000", "1700000000.123456000", "1700000000.000000000 1500", `{"a": 1}`, "00FF", nil, "{}"})
	})
	rs, err := openDSN(t, a.dsn(), target.Config{}).Query(t.Context(), "SELECT …", "x", int64(1), 1.5, true, time.Now(),
		[]byte("b"), json.Number("1.50"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{int64(42), "12345678901234567890.1234567890", "99999999999999999999999999999999999999", 1.5e-7, "text",
		true, time.Unix(19000*86400, 0).UTC(),
		time.Unix(1700000000, 123456000).UTC(), time.Unix(1700000000, 0).UTC(), `{"a": 1}`, `\x00ff`, nil, "{}"}
	for i, w := range want {
		got := rs.Rows[0][i]
		if at, ok := w.(time.Time); ok {
			if g, _ := got.(time.Time); !g.Equal(at) {
				t.Errorf("%s is %v, want %v", rs.Columns[i], got, w)
			}
			continue
		}
		if got != w {
			t.Errorf("%s is %#v, want %#v", rs.Columns[i], got, w)
		}
	}
}

func TestQueryIsBounded(t *testing.T) {
	a := newAccount(t)
	long := strings.Repeat("x", 1<<20)
	a.respond(func(http.ResponseWriter, *http.Request, request) map[string]any {
		var many [][]any
		for range 9 {
			many = append(many, []any{long})
		}
		return rows([]string{"T:text"}, many...)
	})
	if _, err := openDSN(t, a.dsn(), target.Config{}).Query(t.Context(), "SELECT …"); !errors.Is(err, target.ErrTooLarge) {
		t.Error(err)
	}
}

type given [][]any

func (g given) Len() int           { return len(g) }
func (g given) Value(r, c int) any { return g[r][c] }

func TestLoadMixesTypesAsText(t *testing.T) {
	a := newAccount(t)
	a.respond(func(_ http.ResponseWriter, _ *http.Request, q request) map[string]any {
		if strings.HasPrefix(q.SQLText, "INSERT") {
			return affected(3)
		}
		return rows([]string{"status:text"}, []any{"ok"})
	})
	db := openDSN(t, a.dsn(), target.Config{})
	sent := false
	n, err := db.Load(t.Context(), `"T x"`, []engine.Column{{Name: "id"}, {Name: `we"ird`}, {Name: "M"}},
		func() (plugin.Rows, error) {
			if sent {
				return nil, nil
			}
			sent = true
			return given{{int64(1), 0.1, time.UnixMicro(1)}, {nil, "12.50", nil}, {int64(3), nil, time.UnixMicro(2)}}, nil
		}, nil)
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	var texts []string
	for _, q := range a.requests {
		texts = append(texts, q.SQLText)
	}
	if want := []string{"BEGIN", `INSERT INTO "T x" ("id", "we""ird", "M") VALUES (?, ?, ?)`,
		"COMMIT"}; !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	b := a.requests[1].Bindings
	if fmt.Sprint(b["1"], b["2"],
		b["3"]) != "{FIXED [1 <nil> 3]} {TEXT [0.1 12.50 <nil>]} {TIMESTAMP_NTZ [1000 <nil> 2000]}" {
		t.Errorf("%v", b)
	}
}

// privateKey is a key in PEM form, the same for all tests.
var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
})
