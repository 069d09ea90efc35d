package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// revokedWithin is how long anything may go on after the rights to it have ended, on whichever server.
const revokedWithin = 5 * time.Second

// twoServers are two servers on one external control store, and its admin at the first of them.
type twoServers struct {
	t     *testing.T
	conn  *pgx.Conn
	load  string
	admin *clitest.LiveServer
	bases [2]string
}

func startTwoServers(t *testing.T) twoServers {
	t.Helper()
	s := twoServers{t: t, load: pgtest.StartCrashable(t, nil).DSN("postgres")} // not where the control store is
	control := postgrestest.NewControl(t)
	conn, err := pgx.Connect(t.Context(), control)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	s.conn = conn
	dir := t.TempDir()
	if _, err := keyring.Open(filepath.Join(dir, "loadstone.key")); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "loadstone.key"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.bases {
		p := clitest.NewProgram(t)
		if err := os.MkdirAll(p.Path("data"), 0o755); err != nil {
			t.Fatal(err)
		}
		p.Write("data/loadstone.key", string(key))
		served := p.Serve("--database-url", control)
		t.Cleanup(served.Stop)
		if i == 0 {
			s.admin = served
		}
		s.bases[i] = served.Base
	}
	return s
}

// user makes a user with a token, which calls the second server, and returns its id.
func (s twoServers) user(name, role string) (id string, as clitest.Caller) {
	s.t.Helper()
	status, body := s.admin.Send("POST", "/api/users", fmt.Sprintf(`{"name":%q,"role":%q}`, name, role))
	var made struct {
		User struct {
			UserID string `json:"user_id"`
		}
		URL string
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusCreated {
		s.t.Fatalf("%d %s", status, body)
	}
	link, err := url.Parse(made.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	invitation := link.Query().Get("invitation")
	var cookie string
	(clitest.Caller{T: s.t, Base: s.bases[1], Header: [2]string{"Accept", "*/*"}}).Do("POST", "/api/auth/signin",
		map[string]string{"invitation": invitation, "password": "two servers and a half"}, &cookie)
	var token struct{ Secret string }
	(clitest.Caller{T: s.t, Base: s.bases[1], Header: [2]string{"Cookie", cookie}}).Do("POST", "/api/auth/tokens",
		map[string]string{"name": "test"}, &token)
	return made.User.UserID, clitest.Caller{
		T:      s.t,
		Base:   s.bases[1],
		Header: [2]string{"Authorization", "Bearer " + token.Secret},
	}
}

// run starts a run of 60 s against a saved connection.
func (s twoServers) run(as clitest.Caller, name, connection string) (runID string) {
	s.t.Helper()
	source := fmt.Sprintf(
		"name: %s\ntarget:\n  connection: %q\n  table_name: orders_%s\n  prepare: {rows: 100, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 20, concurrent_connections: 2, duration_seconds: 60, "+
			"warmup_seconds: 0}\n",
		name,
		connection,
		strings.ReplaceAll(name, "-", "_"),
	)
	var run engine.Run
	as.Do("POST", "/api/runs", map[string]any{"source": source, "start": true}, &run)
	as.AwaitLoad(run.RunID)
	return run.RunID
}

// state is the status of a run, and the reason of its end.
func (s twoServers) state(runID string) string {
	s.t.Helper()
	var status, reason string
	if err := s.conn.QueryRow(
		s.t.Context(),
		"SELECT status, coalesce(cancellation_reason, '') FROM run_status WHERE run_id = $1",
		runID,
	).Scan(
		&status,
		&reason,
	); err != nil {
		s.t.Fatal(err)
	}
	return status + ": " + reason
}

// query is the state of a continuous query, with its failure.
func (s twoServers) query(name string) string {
	s.t.Helper()
	var state, failure string
	if err := s.conn.QueryRow(s.t.Context(), "SELECT execution_state, failure FROM queries WHERE name = $1", name).
		Scan(&state, &failure); err != nil {
		s.t.Fatal(err)
	}
	return state + ": " + failure
}

// soon waits for something after rights have ended, and returns when it was so.
func (s twoServers) soon(revoked time.Time, what string, is func() bool) {
	s.t.Helper()
	for !is() {
		if time.Since(revoked) > revokedWithin {
			s.t.Fatalf("%s is not so after %v", what, revokedWithin)
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Logf("%s: %v after it was revoked", what, time.Since(revoked).Round(time.Millisecond))
}

// TestRightsEndWhatGoesOn: what one server changes of a user's rights ends what goes on for it on another: its run, its
// continuous query, its socket. A query is suspended, and goes on when somebody with the rights resumes it.
func TestRightsEndWhatGoesOn(t *testing.T) {
	t.Parallel()
	s := startTwoServers(t)
	at, posted := clitest.WebhookReceiver(t)
	source := startTCPSource(t, 100)
	t.Cleanup(func() { close(source.stop); close(source.end) })
	annID, ann := s.user("ann", "operator")
	benID, ben := s.user("ben", "operator")
	var made struct {
		ConnectionID string `json:"connection_id"`
		Version      int64
	}
	ben.Do("POST", "/api/connections", map[string]any{"name": "bens", "driver": "postgres", "dsn": s.load}, &made)
	ann.Do(
		"POST",
		"/api/v1/streams/statements",
		map[string]any{"sql": fmt.Sprintf(`CREATE LOGICAL SOURCE a(n INT64, text VARSIZED);
		CREATE PHYSICAL SOURCE FOR a TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST, %d AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE);
		CREATE SINK w TYPE WEBHOOK SET('%s/rows' AS SINK.URL); CREATE QUERY posts AS SELECT n FROM a INTO w`, source.port, at)},
		nil,
	)
	<-posted
	first, second := s.run(ann, "anns", "bens"), s.run(ben, "bens", "bens")
	socket := ann.Watch(second)
	gone := make(chan error, 1)
	go func() {
		for {
			if _, _, err := socket.ReadMessage(); err != nil {
				gone <- err
				return
			}
		}
	}()

	// The connection is restricted to its owner: ann's run ends, her query and socket do not.
	revoked := time.Now()
	if status, body := s.admin.Send("PUT", "/api/connections/"+made.ConnectionID, fmt.Sprintf(
		`{"name":"bens","driver":"postgres","dsn":%q,"access":{"restricted":true}}`, s.load)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	s.soon(revoked, "a run on a connection that is restricted", func() bool {
		return strings.HasPrefix(s.state(first), "CANCEL")
	})
	if is := s.state(first); !strings.Contains(is, "It was stopped: the user who started it may not use its connection") {
		t.Errorf("the run is %s", is)
	}
	if is := s.query("posts"); !strings.HasPrefix(is, "RUNNING") {
		t.Errorf("the query is %s", is)
	}

	// Ann is locked out: her query posts nothing any more, and her socket ends. Ben's run goes on.
	revoked = time.Now()
	if status, body := s.admin.Send("PATCH", "/api/users/"+annID, `{"disabled":true}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	s.soon(
		revoked,
		"a query of a locked user",
		func() bool { return strings.HasPrefix(s.query("posts"), "SUSPENDED") },
	)
	if is := s.query("posts"); is != "SUSPENDED: the user who created it has no right to it any more" {
		t.Errorf("the query is %s", is)
	}
	s.soon(revoked, "a socket of a locked user", func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
	s.soon(revoked, "a token of a locked user", func() bool {
		status, _ := ann.Try("GET", "/api/runs/"+second, nil, nil)
		return status == http.StatusUnauthorized
	})
	for len(posted) > 0 {
		<-posted
	}
	time.Sleep(2 * time.Second)
	if n := len(posted); n > 0 {
		t.Errorf("%d times rows were posted for a locked user", n)
	}
	if is := s.state(second); !strings.HasPrefix(is, "RUNNING") {
		t.Errorf("the run of another is %s", is)
	}

	// Ben resumes the query, and it is his; a viewer does not.
	_, vic := s.user("vic", "viewer")
	if status, _ := vic.Try(
		"POST",
		"/api/v1/streams/statements",
		map[string]any{"sql": "RESUME QUERY posts"},
		nil,
	); status != http.StatusForbidden {
		t.Errorf("a viewer resumes a query: %d", status)
	}
	again := startTCPSource(t, 100)
	t.Cleanup(func() { close(again.stop); close(again.end) })
	if _, err := s.conn.Exec(t.Context(), `UPDATE physical_sources SET source_config = jsonb_set(source_config,
		'{SOURCE.SOCKET_PORT}', to_jsonb($1::int)) WHERE source_type = 'TCP'`, again.port); err != nil {
		t.Fatal(err)
	}
	ben.Do("POST", "/api/v1/streams/statements", map[string]any{"sql": "RESUME QUERY posts"}, nil)
	select {
	case <-posted:
	case <-time.After(20 * time.Second):
		t.Errorf("the query that was resumed is %s", s.query("posts"))
	}

	// Ben is made a viewer by whoever writes into the store, and then deleted: his run ends, and his query.
	revoked = time.Now()
	if _, err := s.conn.Exec(t.Context(), "UPDATE users SET role = 'viewer' WHERE user_id = $1", benID); err != nil {
		t.Fatal(err)
	}
	s.soon(
		revoked,
		"a run whose user became a viewer",
		func() bool { return strings.HasPrefix(s.state(second), "CANCEL") },
	)
	s.soon(revoked, "a query whose user became a viewer", func() bool {
		return s.query("posts") == "SUSPENDED: the user who created it has no right to it any more"
	})

	// What anybody reads of it, by the API, the log, the report and statements about the catalog, says no more than that.
	_, ola := s.user("ola", "operator")
	admin := func(method, path, body string) string {
		status, text := s.admin.Send(method, path, body)
		return fmt.Sprint(status, " ", text)
	}
	by := func(c clitest.Caller) func(method, path, body string) string {
		return func(method, path, body string) string {
			var in, out any
			if body != "" {
				in = json.RawMessage(body)
			}
			status, problem := c.Try(method, path, in, &out)
			text, err := json.Marshal(out)
			return fmt.Sprint(status, " ", string(text), " ", problem, " ", err)
		}
	}
	const show = `{"sql":"SHOW QUERIES"}`
	for role, ask := range map[string]func(method, path, body string) string{"viewer": by(vic), "operator": by(ola),
		"admin": admin} {
		for path, want := range map[string]string{"/api/runs/" + first: "the user who started it may not use its connection",
			"/api/runs/" + second: "the user who started it has no right to it", "/api/runs": "run_id",
			"/api/v1/streams": "the user who created it has no right to it", "/api/runs/" + second + "/logs": ""} {
			got := ask("GET", path, "")
			if !strings.Contains(got, want) || tellsFate(got) {
				t.Errorf("%s reads as %s: %s", path, role, got)
			}
		}
		if got := ask("POST", "/api/v1/streams/statements", show); tellsFate(got) {
			t.Errorf("a statement shows as %s: %s", role, got)
		}
	}
}

// tellsFate reports whether a text says what has become of ann or ben.
func tellsFate(text string) bool {
	for _, fate := range []string{"locked out", "no user any more", "is a viewer now", "ann, who", "ben, who"} {
		if strings.Contains(text, fate) {
			return true
		}
	}
	return false
}
