package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// leaves gives a connection, as it was saved, to a new user, and deletes the user.
func leaves(server *clitest.LiveServer, name string, saved []byte) {
	var list struct {
		Connections []struct {
			ID   string `json:"connection_id"`
			Name string
		}
	}
	var made struct {
		User struct {
			ID string `json:"user_id"`
		}
	}
	decode := func(text string, into any) {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			server.T.Fatalf("%v: %s", err, text)
		}
	}
	do := func(want int, method, path, body string) string {
		status, answer := server.Send(method, path, body)
		if status != want {
			server.T.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}
	decode(do(http.StatusCreated, "POST", "/api/users", `{"name":"leaver","role":"operator"}`), &made)
	decode(do(http.StatusOK, "GET", "/api/connections", ""), &list)
	in := map[string]any{}
	decode(string(saved), &in)
	in["access"] = map[string]any{"restricted": true, "owner": "leaver"}
	body, err := json.Marshal(in)
	if err != nil {
		server.T.Fatal(err)
	}
	for _, c := range list.Connections {
		if c.Name == name {
			do(http.StatusOK, "PUT", "/api/connections/"+c.ID, string(body))
		}
	}
	do(http.StatusNoContent, "DELETE", "/api/users/"+made.User.ID, "")
}

// TestWhatIsOwedInTheResultsConnectionFollows: a run that ended before there was the option is taken there when a
// server starts with it; what a table of somebody else's kept out of earlier runs follows with the next run that is
// taken there whole, and when a server starts. Nothing is there twice.
func TestWhatIsOwedInTheResultsConnectionFollows(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := p.StandIn("--listen", "127.0.0.1:0", "--password-file", p.Write("password", "hunter2\n"), "--time-scale", "10")
	defer s.Stop(t)
	account, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(s.Dsn), ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	do := func(sql ...string) {
		t.Helper()
		if err := account.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	workers := []string{"--refresh-workers", "2"} // tests have none of themselves
	server := p.Serve(workers...)
	body, err := json.Marshal(map[string]any{"name": "lake", "driver": "snowflake", "dsn": s.Dsn})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := server.Send("POST", "/api/connections", string(body)); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	// Who owns the connection is deleted: what a flag names goes on.
	leaves(server, "lake", body)
	source := fmt.Sprintf("name: owed\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n"+
		"  adapter: snowflake_standard\n  table_name: orders\n  prepare: {rows: 100, if_exists: use}\n"+
		"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: 2}\n", s.Dsn)
	recorded := map[string]int64{}
	run := func() string {
		t.Helper()
		d := server.AwaitEnd(server.StartRun(source).RunID)
		recorded[d.RunID] = d.Summary.Accounting.Recorded
		return d.RunID
	}
	// standing is what the book says of a run.
	standing := func(id string) string {
		t.Helper()
		body, err := json.Marshal(map[string]any{"sql": "SELECT status || ' ' || whole AS s FROM rollup.exports " +
			"WHERE run_id = '" + id + "'"})
		if err != nil {
			t.Fatal(err)
		}
		status, answer := server.Send("POST", "/api/query", string(body))
		var a struct{ Rows [][]string }
		if err := json.Unmarshal([]byte(answer), &a); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
		if len(a.Rows) == 0 {
			return "not there"
		}
		return a.Rows[0][0]
	}
	await := func(want string, ids ...string) {
		t.Helper()
		for _, id := range ids {
			for begin, got := time.Now(), ""; got != want; time.Sleep(100 * time.Millisecond) {
				if got = standing(id); got != want && time.Since(begin) > time.Minute {
					t.Fatalf("a run is %s, not %s: %s", got, want, server.MustGet("/api/v1/tables/exported_executions/history"))
				}
			}
		}
	}
	foreign := "CREATE TABLE TEST_RESULTS (RUN_ID VARCHAR, SCORE INT)"
	apply := func(want int) {
		t.Helper()
		if code, text := p.Command("schema", "apply", "--snowflake", s.Dsn); code != want {
			t.Fatalf("exit %d, not %d: %s", code, want, text)
		}
	}

	before := run() // without the option
	if got := standing(before); got != "not there" {
		t.Errorf("without the option the run is %s", got)
	}
	server.Stop()
	do(foreign)
	apply(1)
	server = p.Serve(append(workers, "--results-connection", "lake")...)
	defer func() { server.Stop() }()
	await("DONE false", before)

	// The table is gone: the next run is there whole, and so is the one before.
	do("DROP TABLE TEST_RESULTS")
	apply(0)
	next := run()
	await("DONE true", next, before)

	// Another is in the way, of a server that ends before it goes.
	do("ALTER TABLE TEST_RESULTS RENAME TO ASIDE", foreign)
	last := run()
	await("DONE false", last)
	server.Stop()
	do("DROP TABLE TEST_RESULTS", "ALTER TABLE ASIDE RENAME TO TEST_RESULTS")
	server = p.Serve(append(workers, "--results-connection", "lake")...)
	await("DONE true", last)

	for _, id := range []string{before, next, last} {
		of := " WHERE RUN_ID = '" + id + "'"
		rows, err := account.Query(t.Context(), "SELECT (SELECT COUNT(*) FROM TEST_RESULTS"+of+
			" AND TEST_ID = RUN_ID) || ' ' || COUNT(*) "+
			"|| ' ' || COUNT(DISTINCT PART || '/' || CONNECTION_ID || '/' || SEQ) "+
			"FROM QUERY_EXECUTIONS"+of+" AND STATEMENT_POSITION = 0")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(rows.Rows[0]...), fmt.Sprint("1 ", recorded[id], " ", recorded[id]); got != want {
			t.Errorf("of %s there are results, executions, and different executions: %s, want %s", id, got, want)
		}
	}
}
