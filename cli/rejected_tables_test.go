package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// tableServer is a server whose derived tables a test makes.
type tableServer struct{ *clitest.LiveServer }

type tableDetail struct {
	Table  refresh.Table
	ReadBy []string `json:"read_by"`
}

// call asks the API, and returns the error that it answers with, nil when it does what it was asked.
func (s tableServer) call(method, path string, in map[string]any, out any) (int, *engine.Error) {
	s.T.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		s.T.Fatal(err)
	}
	status, answer := s.Send(method, path, string(body))
	if status >= 300 {
		var message struct {
			Code         engine.Code
			Detail, Hint string
			Errors       []engine.FieldError
		}
		if err := json.Unmarshal([]byte(answer), &message); err != nil || message.Code == "" || message.Detail == "" {
			s.T.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
		}
		return status, &engine.Error{Code: message.Code, Message: message.Detail, Hint: message.Hint, Fields: message.Errors}
	}
	if out != nil {
		if err := json.Unmarshal([]byte(answer), out); err != nil {
			s.T.Fatalf("%s %s: %s %v", method, path, answer, err)
		}
	}
	return status, nil
}

func at(name string) string { return "/api/v1/tables/" + url.PathEscape(name) }

// make makes a table that is refreshed at once.
func (s tableServer) make(name, definition string) (int, *engine.Error) {
	s.T.Helper()
	return s.call(http.MethodPost, "/api/v1/tables", map[string]any{"name": name, "definition": definition,
		"target_lag_seconds": 3600}, nil)
}

func (s tableServer) table(name string) (d tableDetail) {
	s.T.Helper()
	if _, err := s.call(http.MethodGet, at(name), nil, &d); err != nil {
		s.T.Fatalf("%s: %v", name, err)
	}
	return d
}

// awaitFresh waits until a table has its rows.
func (s tableServer) awaitFresh(name string) {
	s.T.Helper()
	var d tableDetail
	clitest.Until(s.T, clitest.StartTimeout, func() bool { d = s.table(name); return !d.Table.AsOf.IsZero() },
		func() string { return fmt.Sprintf("%+v\n%s", d, s.Out.String()) })
}

// awaitFailure waits until a refresh has failed, and returns what is said of it.
func (s tableServer) awaitFailure(name string, limit time.Duration) (text string) {
	s.T.Helper()
	clitest.Until(s.T, limit, func() bool { text = s.table(name).Table.Error; return text != "" }, s.Out.String)
	return text
}

func (s tableServer) quoted(name string) string {
	return `tables."` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// rows asks how many rows a table has.
func (s tableServer) rows(name string) (n int) {
	s.T.Helper()
	var answer struct{ Rows [][]json.Number }
	if _, err := s.call(http.MethodPost, "/api/query", map[string]any{"sql": "SELECT count(*) FROM " + s.quoted(name)},
		&answer); err != nil {
		s.T.Fatalf("%s: %v", name, err)
	}
	_, err := fmt.Sscan(string(answer.Rows[0][0]), &n)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}

// columnList is a SELECT of so many columns.
func columnList(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%d AS c%d", i, i)
	}
	return "SELECT " + strings.Join(list, ", ")
}

// TestTablesThatNobodyShouldMake: what cannot become a table is refused by a real server with its field, a sentence and
// what to do; what can, whatever it is called, is made, refreshed, asked and dropped. What others read stays.
func TestTablesThatNobodyShouldMake(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("starts a server and waits for two dozen refreshes; make soak sets " + clitest.Soak)
	}
	p := clitest.NewProgram(t)
	s := tableServer{p.Serve("--refresh-workers", "2")}
	defer s.Stop()
	for about, c := range map[string]struct {
		name, definition string
		code             engine.Code
		says             string
	}{
		"two columns of a name": {"", "SELECT 1 AS a, 2 AS a", engine.CodeInvalid, `two columns named "a"`},
		"two columns without":   {"", "SELECT 1, 2", engine.CodeInvalid, `two columns named "?column?"`},
		"501 columns":           {"", columnList(501), engine.CodeInvalid, "has 501 columns"},
		"2000 columns":          {"", columnList(2000), engine.CodeInvalid, "at most 1664"},
		"no column":             {"", "SELECT FROM rollup.runs", engine.CodeInvalid, "has 0 columns"},
		"a row as a column":     {"", "SELECT ROW(1, 2) AS r", engine.CodeInvalid, "no table can hold"},
		"a name of 64 bytes":    {strings.Repeat("ä", 32), "SELECT 1 AS a", engine.CodeInvalid, "64 bytes"},
		"a slash":               {"a/b", "SELECT 1 AS a", engine.CodeInvalid, "cannot be used"},
		"a line break":          {"a\nb", "SELECT 1 AS a", engine.CodeInvalid, "cannot be used"},
		"a zero byte":           {"a\x00b", "SELECT 1 AS a", engine.CodeInvalid, "cannot be used"},
		"dots":                  {"..", "SELECT 1 AS a", engine.CodeInvalid, "begin and end it with a letter"},
		"a blank in front":      {" a", "SELECT 1 AS a", engine.CodeInvalid, "begin and end it with a letter"},
		"one that is there":     {"run_summary", "SELECT 1 AS a", engine.CodeConflict, "already"},
		"what is not there":     {"", "SELECT * FROM nowhere", engine.CodeInvalid, `relation "nowhere" does not exist`},
		"a write":               {"", "DELETE FROM rollup.runs", engine.CodeInvalid, ""},
		"two statements":        {"", "SELECT 1 AS a; SELECT 2 AS b", engine.CodeInvalid, ""},
	} {
		name := c.name
		if name == "" {
			name = "bad"
		}
		status, err := s.make(name, c.definition)
		if err == nil || err.Code != c.code || status/100 != 4 || !strings.Contains(engine.ErrorText(err), c.says) {
			t.Errorf("%s: %d %v", about, status, err)
		}
	}
	names := []string{`a "quoted" one`, "it's", "näher, 日本語 🙂", "A.b", "%2F", "select", strings.Repeat("x", 63),
		strings.Repeat("ü", 31), `back\slash`, "a;--b", "$1", "run_seconds "[:11] + "2"}
	for _, name := range names {
		if _, err := s.make(name, `SELECT i AS "a ""column"" ä", NULL AS "`+strings.Repeat("y", 63)+`"
			FROM generate_series(1, 3) AS i`); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for i, name := range names {
		s.awaitFresh(name)
		if n := s.rows(name); n != 3 {
			t.Errorf("%q has %d rows of 3", name, n)
		}
		if _, err := s.make(fmt.Sprint("of_", i), "SELECT * FROM "+s.quoted(name)); err != nil {
			t.Errorf("reading %q: %v", name, err)
			continue
		}
		if status, err := s.call(http.MethodDelete, at(name), nil, nil); status != http.StatusConflict || err == nil ||
			!strings.Contains(engine.ErrorText(err), fmt.Sprintf("is read by of_%d. Drop these first.", i)) {
			t.Errorf("dropping %q, which is read: %d %v", name, status, err)
		}
		if d := s.table(name); len(d.ReadBy) != 1 || d.ReadBy[0] != fmt.Sprint("of_", i) {
			t.Errorf("%q is read by %v", name, d.ReadBy)
		}
		for _, gone := range []string{fmt.Sprint("of_", i), name} {
			if _, err := s.call(http.MethodDelete, at(gone), nil, nil); err != nil {
				t.Errorf("dropping %q: %v", gone, err)
			}
		}
		if status, _ := s.call(http.MethodGet, at(name), nil, nil); status != http.StatusNotFound {
			t.Errorf("%q is there after it was dropped: %d", name, status)
		}
	}
	t.Run("circles", func(t *testing.T) { s.checkCycles(t) })
	t.Run("two editors", func(t *testing.T) { s.checkConcurrentEdit(t) })
}

// checkCycles: tables read each other in one direction only, also when both are changed at once.
func (s tableServer) checkCycles(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		if _, err := s.make(name, "SELECT 1 AS n"); err != nil {
			t.Fatal(err)
		}
		s.awaitFresh(name)
	}
	change := func(name, reads string) (int, *engine.Error) {
		return s.call(http.MethodPut, at(name), map[string]any{"definition": "SELECT n FROM tables." + reads,
			"target_lag_seconds": 3600, "version": s.table(name).Table.Version}, nil)
	}
	if status, err := change("a", "a"); status != http.StatusConflict || !strings.Contains(err.Message, "read itself") {
		t.Errorf("a table that reads itself: %d %v", status, err)
	}
	for round := range 5 {
		var both [2]int
		var all sync.WaitGroup
		for i, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
			all.Go(func() { both[i], _ = change(names[0], names[1]) })
		}
		all.Wait()
		if both != [2]int{200, 409} && both != [2]int{409, 200} {
			t.Errorf("round %d: two that would read each other: %v", round, both)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := s.call(http.MethodPut, at(name), map[string]any{"definition": "SELECT 1 AS n",
				"target_lag_seconds": 3600, "version": s.table(name).Table.Version}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, names := range [][2]string{{"a", "b"}, {"b", "c"}} {
		if _, err := change(names[0], names[1]); err != nil {
			t.Fatal(err)
		}
	}
	if status, err := change("c", "a"); status != http.StatusConflict ||
		!strings.Contains(engine.ErrorText(err), "one direction only") {
		t.Errorf("a circle of three: %d %v", status, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		s.awaitFresh(name)
		if n := s.rows(name); n != 1 {
			t.Errorf("%s has %d rows", name, n)
		}
	}
}

// checkConcurrentEdit: the second of two who change the same version is told who was faster, and changes nothing.
func (s tableServer) checkConcurrentEdit(t *testing.T) {
	if _, err := s.make("edited", "SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	before := s.table("edited").Table.Version
	change := func(definition string) (int, *engine.Error) {
		return s.call(http.MethodPut, at("edited"), map[string]any{"definition": definition, "target_lag_seconds": 3600,
			"version": before}, nil)
	}
	if _, err := change("SELECT 2 AS n"); err != nil {
		t.Fatal(err)
	}
	if status, err := change("SELECT 3 AS n"); status != http.StatusConflict || len(err.Fields) != 1 ||
		err.Fields[0].Field != "version" || !strings.Contains(err.Message, "was changed by admin at ") {
		t.Errorf("the second one hears %d %v", status, err)
	}
	if d := s.table("edited"); d.Table.Definition != "SELECT 2 AS n" || d.Table.Version != before+1 {
		t.Errorf("%+v", d.Table)
	}
}

// TestDefinitionsWithoutEnd: definitions that never end, fill the disk, or give more rows than a table may have fail
// with a sentence that says so, at a server with its real limits. It does its other work meanwhile.
func TestDefinitionsWithoutEnd(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("waits until a statement of five minutes is ended; make soak sets " + clitest.Soak)
	}
	p := clitest.NewProgram(t)
	s := tableServer{p.Serve("--refresh-workers", "3")}
	defer s.Stop()
	began := time.Now()
	for name, definition := range map[string]string{
		"endless":  "SELECT count(*) AS n FROM (SELECT generate_series(1, 1000000000000)) AS s",
		"circular": "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT 1 FROM r) SELECT count(*) AS n FROM r",
	} {
		if _, err := s.make(name, definition); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string][]string{
		"full": {"SELECT i, repeat('x', 500) AS t FROM generate_series(1, 100000000) AS i ORDER BY random()",
			"temporary files"},
		"rows":  {"SELECT generate_series(1, 5000001) AS n", "more than 5000000 rows"},
		"bytes": {"SELECT repeat(md5(i::text), 100) AS t FROM generate_series(1, 4000000) AS i", "more than"},
	} {
		if _, err := s.make(name, c[0]); err != nil {
			t.Fatal(err)
		}
		if text := s.awaitFailure(name, 5*time.Minute); !strings.Contains(text, c[1]) {
			t.Errorf("%s: %s", name, text)
		} else {
			t.Logf("%s: %s", name, text)
		}
		if _, err := s.call(http.MethodDelete, at(name), nil, nil); err != nil {
			t.Error(err)
		}
		if _, err := s.make("good", "SELECT 1 AS n"); err != nil {
			t.Fatal(err)
		}
		s.awaitFresh("good")
		if _, err := s.call(http.MethodDelete, at("good"), nil, nil); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"endless", "circular"} {
		text := s.awaitFailure(name, 10*time.Minute)
		t.Logf("%s, %v after it was made: %s", name, time.Since(began).Round(time.Second), text)
		if !strings.Contains(text, "took longer than it may") && !strings.Contains(text, "temporary files") {
			t.Errorf("%s: %s", name, text)
		}
		if _, err := s.call(http.MethodDelete, at(name), nil, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestWhoAsksWhatIsBeingMade: a query of a table whose first refresh is under way waits for it, so that the first one
// after a start is answered; where nobody refreshes, or the refresh failed, it hears that.
func TestWhoAsksWhatIsBeingMade(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := tableServer{p.Serve("--refresh-workers", "0")}
	ask := func(table string) string {
		_, err := s.call(http.MethodPost, "/api/query", map[string]any{"sql": "SELECT count(*) FROM " + table}, nil)
		if err == nil {
			return ""
		}
		return engine.ErrorText(err)
	}
	if message := ask("run_summary"); !strings.Contains(message, `"run_summary" has not been refreshed yet`) ||
		!strings.Contains(message, "Nobody") || !strings.Contains(message, "--refresh-workers 1") {
		t.Errorf("where nobody refreshes: %q", message)
	}
	s.Stop()
	s = tableServer{p.Serve("--refresh-workers", "2")}
	defer s.Stop()
	if output := ask("run_summary"); output != "" {
		t.Errorf("a moment after the start: %s", output)
	}
	for name, definition := range map[string]string{"slow": "SELECT count(*) AS n FROM generate_series(1, 5000000) AS i",
		"wrong": "SELECT (1 / (random() * 0))::int AS n"} {
		if _, err := s.make(name, definition); err != nil {
			t.Fatal(err)
		}
		if reported := ask(name); name == "slow" && reported != "" {
			t.Errorf("while it is made: %s", reported)
		} else if name == "wrong" && !strings.Contains(reported, "division by zero") {
			t.Errorf("when it cannot be made: %q", reported)
		}
	}
}
