package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// streamsServer is a real server with its catalog of streams.
type streamsServer struct{ *clitest.LiveServer }

// refusedStatement is what a group of statements is refused with.
type refusedStatement struct {
	Code, Detail, Hint string
	Errors             []struct {
		Field, Message, Hint, Excerpt string
		Line, Column                  int
	}
}

func (s streamsServer) statements(sql string) (status int, done string, p refusedStatement) {
	s.T.Helper()
	in, err := json.Marshal(map[string]any{"sql": sql})
	if err != nil {
		s.T.Fatal(err)
	}
	status, body := s.Send("POST", "/api/v1/streams/statements", string(in))
	if status != http.StatusOK {
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			s.T.Fatalf("%d %s: %v", status, body, err)
		}
	}
	return status, body, p
}

func (s streamsServer) done(sql string) string {
	s.T.Helper()
	status, body, _ := s.statements(sql)
	if status != http.StatusOK {
		s.T.Fatalf("%s: %d %s", sql, status, body)
	}
	return body
}

// query is a query as GET /api/v1/streams shows it.
func (s streamsServer) query(name string) (q struct {
	Name, State, Failure string
	Output               []string
}) {
	s.T.Helper()
	all := struct {
		Queries []struct {
			Name, State, Failure string
			Output               []string
		}
	}{}
	if err := json.Unmarshal([]byte(s.MustGet("/api/v1/streams")), &all); err != nil {
		s.T.Fatal(err)
	}
	for _, one := range all.Queries {
		if one.Name == name {
			return one
		}
	}
	return q
}

// until waits for the state of a query; "" is gone.
func (s streamsServer) until(name, state string) {
	s.T.Helper()
	last := s.query(name)
	for end := time.Now().Add(time.Minute); last.State != state; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.T.Fatalf("%s is %q, not %q: %+v", name, last.State, state, last)
		}
		last = s.query(name)
	}
}

const streamsBefore = `CREATE WORKER w1 SET(8080 AS GRPC_PORT, 4 AS NUM_SLOTS); CREATE WORKER w2 SET(('w1') AS PEERS);
	CREATE WORKER w3; CREATE WORKER w4;
	CREATE LOGICAL SOURCE a(ts INT64, x INT64); CREATE LOGICAL SOURCE a2(ts INT64, y INT64);
	CREATE LOGICAL SOURCE bare(ts INT64, x INT64);
	CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
	CREATE PHYSICAL SOURCE FOR a2 TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
	CREATE LOGICAL SOURCE far(ts INT64, x INT64);
	CREATE PHYSICAL SOURCE FOR far TYPE FILE ON w3 SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
	CREATE SINK s TYPE PRINT; CREATE SINK away TYPE PRINT ON w4; CREATE SINK two(p INT64, q INT64) TYPE PRINT;
	CREATE QUERY q AS SELECT runId FROM run_events INTO s`

// refusals are the errors of statements, each by one of them, with the place and the cure.
var refusals = []struct {
	sql, kind    string
	status       int
	line, column int
	hint         string
}{
	{"CREATE LOGICAL SOURCE A(x INT64)", "AlreadyExists", 409, 1, 23, "another name"},
	{"CREATE LOGICAL SOURCE b()", "EmptySchema", 422, 1, 23, "name TYPE"},
	{"CREATE LOGICAL SOURCE b(\n  x INT65)", "InvalidSchema", 422, 2, 5, "did you mean INT64?"},
	{"CREATE LOGICAL SOURCE b(x INT64, X TEXT)", "InvalidSchema", 422, 1, 34, "more than case"},
	{"CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('b' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)", "AlreadyExists",
		409, 1, 35, "another worker"},
	{"CREATE PHYSICAL SOURCE FOR bare TYPE FILE ON w9 SET('b' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)",
		"WorkerDoesNotExistForPhysical", 422, 1, 46, "did you mean w1?"},
	{"CREATE PHYSICAL SOURCE FOR bere TYPE FILE", "LogicalSourceDoesNotExistForPhysical", 422, 1, 28,
		"did you mean bare?"},
	{"CREATE PHYSICAL SOURCE FOR bare TYPE KAFKA", "SourceTypeDoesNotExist", 422, 1, 38, "there are FILE, TCP"},
	{"CREATE PHYSICAL SOURCE FOR bare TYPE FILE SET('b' AS SOURCE.FILE_PAHT)", "InvalidConfig", 422, 1, 47,
		"did you mean SOURCE.FILE_PATH?"},
	{"CREATE PHYSICAL SOURCE FOR bare TYPE SYSTEM SET('heartbeats' AS SOURCE.STREAM)", "InvalidConfig", 422, 1, 28,
		"timestamp TIMESTAMP, runId TEXT"},
	{"CREATE SINK S TYPE PRINT", "AlreadyExists", 409, 1, 13, "another name"},
	{"CREATE SINK z TYPE PRINT ON w9", "WorkerDoesNotExistForSink", 422, 1, 29, "did you mean w1?"},
	{"CREATE SINK z TYPE PRINTT", "SinkTypeDoesNotExist", 422, 1, 20, "did you mean PRINT?"},
	{"CREATE SINK z TYPE WEBHOOK SET('ftp://h/' AS SINK.URL)", "InvalidConfig", 422, 1, 32, ""},
	{"CREATE SINK z TYPE WEBHOOK SET('http://169.254.169.254/' AS SINK.URL)", "InvalidConfig", 422, 1, 32, ""},
	{"SELECT x FROM a WINDOW TUMBLNG(ts, SIZE 5 SEC) INTO s", "ParserError", 422, 1, 24, "did you mean TUMBLING?"},
	{"SELECT x FROM a INTO ss", "SinkDoesNotExistForQuery", 422, 1, 22, "did you mean s?"},
	{"SELECT runIt FROM run_events INTO s", "BinderError", 422, 1, 8, "did you mean runId?"},
	{"SELECT x FROM a INTO two", "BinderError", 422, 1, 22, ""},
	{"SELECT a.x FROM a JOIN a2 ON a.x > a2.y WINDOW TUMBLING(a.ts, SIZE 1 SEC) INTO s", "OptimizerError", 422, 1, 34,
		"a.id = b.id"},
	{"SELECT COUNT(*) AS n FROM a WINDOW SLIDING(ts, SIZE 1 YEARS, ADVANCE BY 1 SEC) INTO s", "OptimizerError", 422, 1, 29,
		"advance by more"},
	{"SELECT x FROM bare INTO s", "PlacementError", 422, 1, 1, "CREATE PHYSICAL SOURCE FOR bare"},
	{"SELECT x FROM far INTO s", "PlacementError", 422, 1, 1, "loadstone node list"},
	{"SELECT x FROM a INTO away", "PlacementError", 422, 1, 1, "loadstone node list"},
	{"CREATE QUERY Q AS SELECT x FROM a INTO s", "AlreadyExists", 409, 1, 14, "another name"},
	{"SHOW SINKS;\nRESUME QUERY q", "NameLocked", 409, 2, 14, "RESUME is for a query that is SUSPENDED"},
	{strings.Repeat("SELECT x FROM a INTO s;\n", 2000), "ParserError", 422, 1001, 1, "several groups"},
	{"CREATE WORKER W1", "AlreadyExists", 409, 1, 15, "another name"},
	{"CREATE WORKER w9 SET(0 AS GRPC_PORT)", "InvalidAddress", 422, 1, 22, ""},
	{"CREATE WORKER w9 SET(('w9') AS PEERS)", "InvalidTopology", 422, 1, 22, ""},
	{"CREATE WORKER w9 SET(('w8') AS PEERS)", "DoesNotExist", 404, 1, 22, "CREATE the peer"},
	{"DROP LOGICAL SOURCE a", "ReferencedPhysicalSourceExists", 409, 1, 21, "DROP it first"},
	{"CREATE QUERY one AS SELECT x FROM a INTO s; CREATE SINK u TYPE PRINT;\nDROP PHYSICAL SOURCE 9",
		"ReferencedQueryExists", 409, 2, 22, "DROP it first"},
	{"DROP SINK s", "ReferencedQueryExists", 409, 1, 11, "DROP it first"},
	{"DROP WORKER server", "ReferencedQueryExists", 409, 1, 13, "DROP it first"},
	{"DROP WORKER w3", "ReferencedSourceExists", 409, 1, 13, "DROP it first"},
	{"DROP WORKER w4", "ReferencedSinkExists", 409, 1, 13, "DROP it first"},
	{"GET LOGICAL SOURCE none", "DoesNotExist", 404, 1, 20, ""},
	{"GET PHYSICAL SOURCE 99", "DoesNotExist", 404, 1, 21, ""},
	{"GET SINK none", "DoesNotExist", 404, 1, 10, ""},
	{"GET QUERY none", "DoesNotExist", 404, 1, 11, ""},
	{"GET WORKER none", "DoesNotExist", 404, 1, 12, ""},
	// Faults of the text.
	{"SELECT 'never ends", "ParserError", 422, 1, 8, ""},
	{"SELECT /* never ends", "ParserError", 422, 1, 8, ""},
	{"SELECT " + strings.Repeat("(", 10_000) + "1", "ParserError", 422, 1, 0, ""},
	{"SELECT x FROM a INTO s; SELECT", "ParserError", 422, 1, 31, ""},
	{" ;; ", "ParserError", 422, 1, 5, ""},
	{"CREATE SINK ÄÖ TYPE PRINT; GET SINK ÖÄ", "DoesNotExist", 404, 1, 37, ""},
}

// TestErrorsOfStatementsOverHTTP: each error of the catalog by a statement, on the real program, with line, column, a
// caret under the place and the cure; nothing of a group that is refused is kept.
func TestErrorsOfStatementsOverHTTP(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := streamsServer{clitest.NewProgram(t).Serve()}
	s.done(streamsBefore)
	s.until("q", "RUNNING")
	show := "SHOW WORKERS; SHOW LOGICAL SOURCES; SHOW PHYSICAL SOURCES; SHOW SINKS; SHOW QUERIES"
	before := s.done(show)
	for _, want := range refusals {
		sql := want.sql[:min(len(want.sql), 100)]
		status, body, p := s.statements(want.sql)
		if status != want.status || !strings.HasPrefix(p.Detail, want.kind+": ") || len(p.Errors) != 1 {
			t.Errorf("%s: %d %s", sql, status, body)
			continue
		}
		e := p.Errors[0]
		if e.Field != "sql" || e.Line != want.line || want.column != 0 && e.Column != want.column ||
			!strings.Contains(e.Hint, want.hint) {
			t.Errorf("%s: line %d, column %d, %q; want %d, %d, %q", sql, e.Line, e.Column, e.Hint, want.line, want.column,
				want.hint)
		}
		excerpt, caret, _ := strings.Cut(e.Excerpt, "\n")
		line := []rune(strings.Split(want.sql, "\n")[e.Line-1])
		at := len([]rune(caret)) - 1
		if !strings.HasSuffix(caret, "^") || at > len([]rune(excerpt)) ||
			at < len([]rune(excerpt)) && []rune(excerpt)[at] != line[e.Column-1] {
			t.Errorf("%s: the caret is not under the place:\n%s", sql, e.Excerpt)
		}
	}
	if after := s.done(show); after != before {
		t.Errorf("statements that were refused have left something:\n%s\n%s", before, after)
	}
	s.done("DROP QUERY q")
	s.until("q", "")
	s.Stop()
}

// TestBundles: files are one group, and of two that conflict one is accepted.
func TestBundles(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	sources := p.Write("sources.yaml", "statements:\n  - CREATE LOGICAL SOURCE a(ts INT64, x INT64)\n  - |\n"+
		"    CREATE PHYSICAL SOURCE FOR a TYPE FILE\n      SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)\n")
	bad := p.Write("bad.sql", "CREATE SINK s TYPE PRINT;\nSELECT y FROM a INTO s")
	apply := func(files ...string) (int, string) {
		args := []string{"apply", "--data-dir", p.Path("data")}
		for _, f := range files {
			args = append(args, "-f", f)
		}
		return p.Command(args...)
	}
	code, text := apply(sources, bad)
	if code == 0 || !strings.Contains(text, "BinderError") || !strings.Contains(text, "there is no column y") ||
		!strings.Contains(text, "  SELECT y FROM a INTO s\n         ^") {
		t.Errorf("%d %s", code, text)
	}
	if shown := s.done("SHOW SINKS"); strings.Contains(shown, "PRINT") {
		t.Errorf("half of a bundle is kept: %s", shown)
	}
	good := p.Write("good.sql", "CREATE SINK s TYPE PRINT;\nCREATE QUERY q AS SELECT x FROM a INTO s -- the rest;")
	p.Write("data/streams/a.csv", "1,5\n2,6\n")
	if code, text := apply(sources, good); code != 0 || !strings.Contains(text, "accepted the query q") {
		t.Fatalf("%d %s", code, text)
	}
	s.until("q", "TERMINATED")
	if rows := s.query("q").Output; fmt.Sprint(rows) != "[5 6]" {
		t.Errorf("rows %q", rows)
	}
	// Applied again nothing changes; where something does it is a conflict.
	before := s.done("SHOW LOGICAL SOURCES; SHOW PHYSICAL SOURCES; SHOW SINKS; SHOW QUERIES")
	if code, text := apply(sources, good); code != 0 || strings.Count(text, "is there already: nothing was changed") != 4 {
		t.Errorf("%d %s", code, text)
	}
	if after := s.done("SHOW LOGICAL SOURCES; SHOW PHYSICAL SOURCES; SHOW SINKS; SHOW QUERIES"); after != before {
		t.Errorf("applied twice:\n%s\nis not\n%s", after, before)
	}
	other := p.Write("other.sql", "CREATE SINK s TYPE PRINT; CREATE SINK more TYPE PRINT")
	if code, text := apply(other); code == 0 || !strings.Contains(text, "AlreadyExists") {
		t.Errorf("%d %s", code, text)
	}
	for name, text := range map[string]string{"misspelt.yaml": "statments: []", "broken.yaml": "statements: [",
		"empty.sql": " "} {
		if code, message := apply(p.Write(name, text)); code == 0 {
			t.Errorf("%s was applied: %s", name, message)
		}
	}
	var group sync.WaitGroup
	codes, texts := make([]int, 4), make([]string, 4)
	for i := range codes {
		f := p.Write(fmt.Sprintf("meet%d.sql", i),
			fmt.Sprintf("CREATE SINK own%d TYPE PRINT; CREATE SINK both TYPE PRINT", i))
		group.Go(func() { codes[i], texts[i] = apply(f) })
	}
	group.Wait()
	accepted := 0
	for i, code := range codes {
		if code == 0 {
			accepted++
		} else if !strings.Contains(texts[i], "AlreadyExists") {
			t.Errorf("%s", texts[i])
		}
	}
	if shown := s.done("SHOW SINKS"); accepted != 1 || strings.Count(shown, `"own`) != 1 {
		t.Errorf("%d bundles were accepted: %s", accepted, shown)
	}
	// The shell knows which statements are for streams.
	sql := func(text string) (int, string) {
		return p.Command("sql", text, "--data-dir", p.Path("data"), "--format", "csv")
	}
	code, text = sql("CREATE QUERY again AS SELECT x + 1 AS y FROM a INTO s")
	if code != 0 || !strings.Contains(text, "again") {
		t.Errorf("%d %s", code, text)
	}
	s.until("again", "TERMINATED")
	if code, text := sql("SHOW QUERIES STATE TERMINATED"); code != 0 || strings.Count(text, "TERMINATED") != 2 {
		t.Errorf("%d %s", code, text)
	}
	code, text = sql("SELECT x FROM a INTO nobody")
	if code == 0 || !strings.Contains(text, "SinkDoesNotExistForQuery") || !strings.Contains(text, "^") {
		t.Errorf("%d %s", code, text)
	}
	s.Stop()
}

// TestSinksThatReachOut: rows are posted to an address and tried again; a refusal, an address that may not be reached
// and a file with a second name end the query, with what is wrong.
func TestSinksThatReachOut(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	var mu sync.Mutex
	var posted []string
	fails := 2
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/never":
			w.WriteHeader(http.StatusBadRequest)
		case fails > 0:
			fails--
			w.WriteHeader(http.StatusInternalServerError)
		default:
			posted = append(posted, string(body))
		}
	}))
	defer receiver.Close()
	s := streamsServer{p.Serve("--allow-targets", "127.0.0.1/32")}
	p.Write("data/streams/a.csv", "1,5\n2,6\n")
	kept := p.Write("data/kept.txt", "of somebody else")
	if err := os.Link(kept, p.Path("data/streams/linked.csv")); err != nil {
		t.Fatal(err)
	}
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE SINK hook TYPE WEBHOOK SET('` + receiver.URL + `/hook' AS SINK.URL);
		CREATE SINK never TYPE WEBHOOK SET('` + receiver.URL + `/never?key=canary' AS SINK.URL);
		CREATE SINK inside TYPE WEBHOOK SET('http://192.0.2.7/canary' AS SINK.URL);
		CREATE SINK linked TYPE FILE SET('linked.csv' AS SINK.FILE_PATH);
		CREATE QUERY posts AS SELECT x FROM a INTO hook; CREATE QUERY refused AS SELECT x FROM a INTO never;
		CREATE QUERY barred AS SELECT x FROM a INTO inside; CREATE QUERY links AS SELECT x FROM a INTO linked`)
	status, _, e := s.statements("CREATE SINK out TYPE FILE SET('../out.csv' AS SINK.FILE_PATH)")
	if status != 422 || len(e.Errors) != 1 || e.Errors[0].Column != 31 ||
		!strings.Contains(e.Errors[0].Message, "SINK.FILE_PATH leads out of the folder of streams") {
		t.Errorf("%d %+v", status, e)
	}
	s.until("posts", "TERMINATED")
	mu.Lock()
	if fmt.Sprint(posted) != "[{\"x\":5}\n{\"x\":6}\n]" {
		t.Errorf("posted %q", posted)
	}
	mu.Unlock()
	for query, want := range map[string]string{"refused": "NetworkError: 2 rows could not be posted",
		"barred": "allow-targets", "links": "another name besides"} {
		s.until(query, "FAILED")
		if q := s.query(query); !strings.Contains(q.Failure, want) || strings.Contains(q.Failure, "canary") {
			t.Errorf("%s: %+v", query, q)
		}
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "of somebody else" {
		t.Errorf("a file with another name was written: %q, %v", text, err)
	}
	s.Stop()
}

// watched reads the events of a watch, each with when it came.
func (s streamsServer) watched(query, after string) (next func() (kind, id, data string), end func()) {
	s.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.Base+"/api/v1/streams/watch?sql="+url.QueryEscape(query), nil)
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", after)
	res, err := (&http.Client{Jar: s.HTTP.Jar}).Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		s.T.Fatalf("watching: %v, %v", res, err)
	}
	timer := time.AfterFunc(time.Minute, cancel)
	lines := bufio.NewScanner(res.Body)
	return func() (kind, id, data string) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				kind = value
			case "id":
				id = value
			case "data":
				return kind, id, value
			}
		}
		return kind, id, "ended"
	}, func() { timer.Stop(); cancel(); _ = res.Body.Close() }
}

// TestWatchOverHTTP: what happens to queries is seen as it happens, goes on behind a position, and on the command line.
func TestWatchOverHTTP(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	const sql = "WATCH SELECT name, desired_state FROM queries WHERE name LIKE 'q%'"
	next, end := s.watched(sql, "")
	if kind, _, data := next(); kind != "SNAPSHOT" || !strings.Contains(data, `"rows":[]`) {
		t.Fatalf("%s %s", kind, data)
	}
	s.done("CREATE SINK s TYPE PRINT; CREATE QUERY other AS SELECT runId FROM run_events INTO s")
	took := []time.Duration{}
	position := ""
	for i := range 20 {
		s.done(fmt.Sprintf("CREATE QUERY q%d AS SELECT runId FROM run_events INTO s", i))
		accepted := time.Now()
		kind, id, data := next()
		if kind != "CREATE" || !strings.Contains(data, fmt.Sprintf(`"name":"q%d"`, i)) {
			t.Fatalf("%s %s", kind, data)
		}
		took, position = append(took, time.Since(accepted)), id
	}
	slices.Sort(took)
	t.Logf("events came %v after the answer, at the median; the last one %v", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 200*time.Millisecond {
		t.Errorf("events came after %v", took)
	}
	end()
	s.done("DROP QUERY q3")
	next, end = s.watched(sql, position)
	if kind, _, data := next(); kind != "RESUMED" || !strings.Contains(data, `"rows":[]`) {
		t.Fatalf("%s %s", kind, data)
	}
	kind, _, data := next()
	for kind == "UPDATE" && strings.Contains(data, "STOPPED") {
		kind, _, data = next()
	}
	if kind != "DROP" || !strings.Contains(data, "q3") {
		t.Fatalf("%s %s", kind, data)
	}
	end()
	for query, want := range map[string]int{"WATCH SELECT name FROM nowhere": 422, "SHOW QUERIES": 422, "": 422} {
		if status, body := s.Send("GET", "/api/v1/streams/watch?sql="+url.QueryEscape(query), ""); status != want ||
			query != "" && !strings.Contains(body, "excerpt") {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
	shell := clitest.Launch(t, "sql", "WATCH SELECT name FROM sinks", "--data-dir", p.Path("data"))
	clitest.WaitFor(t, clitest.StartTimeout, "the snapshot", func() bool {
		return strings.Contains(shell.Out.String(),
			"SNAPSHOT\ts")
	})
	s.done("CREATE SINK seen TYPE PRINT")
	clitest.WaitFor(t, clitest.StartTimeout, "the event", func() bool {
		return strings.Contains(shell.Out.String(),
			"CREATE\tseen")
	})
	s.Stop()
	clitest.WaitFor(t, clitest.StartTimeout, "the end", func() bool {
		return strings.Contains(shell.Out.String(),
			"ended the watch")
	})
	_ = shell.Wait(t, time.Minute)
}
