package cli

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// repeatingWorkload is a workload whose database repeats a row's value in the messages of its errors: of a statement,
// of one inside a transaction, and of a function of its own.
const repeatingWorkload = `name: repeats
target: {connection: {driver: postgres, dsn: %q}, adapter: postgres}
workload:
  plugin: sql
  params:
    statements:
      - {id: reads, sql: "SELECT count(*) FROM people WHERE id = :id::bigint", binds: [{name: id, generator: uniform, min: 1, max: 1}]}
      - {id: casts, sql: "SELECT name::bigint FROM people WHERE id = :id::bigint", binds: [{name: id, generator: uniform, min: 1, max: 1}]}
      - id: several
        transaction:
          - {id: sees, sql: "SELECT count(*) FROM people", columns: [n]}
          - {id: dates, sql: "SELECT name::date FROM people"}
  concurrent_connections: 2
  warmup_seconds: 0
  duration_seconds: 3
  binds: %s
`

// messageOnlyValue is in the database, and in no template.
const messageOnlyValue = "Kanari Smith-471147114"

var packedContent = regexp.MustCompile(`id="content">([^<]*)<`)

// reportContent is what a report holds.
func reportContent(t *testing.T, page string) string {
	t.Helper()
	m := packedContent.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no content in %.300s", page)
	}
	zipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestValuesInMessagesAreSeenByWhoAsksAlone: what a database repeats of a row in the message of an error is in nothing
// that shows the run, neither while it goes on nor afterwards. Where the template keeps values, who asks for them
// reads the message as it came.
func TestValuesInMessagesAreSeenByWhoAsksAlone(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	db := pgtest.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE people (id bigint, name text, born date); "+
		"INSERT INTO people VALUES (1, '"+messageOnlyValue+"')"); err != nil {
		t.Fatal(err)
	}
	p := clitest.NewProgram(t)
	s := p.Serve()
	defer s.Stop()
	status, body := s.Send("POST", "/api/auth/tokens", `{"name":"ci","scope":"run"}`)
	var token struct{ Secret string }
	if err := json.Unmarshal([]byte(body), &token); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	hidden := func(where, text string) {
		t.Helper()
		for _, part := range []string{"Kanari", "471147114"} {
			if at := strings.Index(text, part); at >= 0 {
				t.Errorf("%s: …%s…", where, text[max(0, at-150):min(len(text), at+60)])
			}
		}
	}
	masked := `invalid input syntax for type bigint: \"•••\"`
	for _, mode := range []string{"plain", "masked", "none"} {
		file := p.Write(mode+".yaml", fmt.Sprintf(repeatingWorkload, db, mode))
		out, junit := p.Path(mode+".json"), p.Path(mode+".xml")
		done := make(chan string, 1)
		go func() {
			_, message := p.Command("run", file, "--server", s.Base, "--token", token.Secret, "--out", out, "--junit", junit)
			done <- message
		}()
		var live struct {
			Runs []engine.Run `json:"runs"`
		}
		clitest.WaitFor(t, clitest.StartTimeout, "an error of a run that goes on", func() bool {
			select {
			case output := <-done:
				t.Fatalf("the run has ended: %s", output)
			default:
			}
			s.GetJSON("/api/runs?status=RUNNING", &live)
			if len(live.Runs) == 0 {
				return false
			}
			now := s.MustGet("/api/runs/" + live.Runs[0].RunID)
			hidden("the run as it goes on", now)
			return strings.Contains(now, masked)
		})
		id := live.Runs[0].RunID
		hidden("the terminal", <-done)
		s.AwaitEnd(id)
		clitest.WaitFor(t, clitest.StartTimeout, "its record", func() bool {
			var f executions.Failures
			s.GetJSON("/api/v1/runs/"+id+"/failures", &f)
			return f.Record.Complete
		})
		for _, path := range []string{out, junit} {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			hidden(path, string(text))
		}
		base := "/api/runs/" + id
		for path, want := range map[string]string{base: masked, "/api/v1/runs/" + id + "/failures": masked,
			"/api/v1/runs/" + id + "/executions?outcome=failed&limit=500&inside=true": masked, base + "/logs": "",
			base + "/executions?format=csv": "•••", base + "/workers": "", base + "/series": "", base + "/events": "",
			"/api/v1/runs/" + id + "/binds": "", "/api/runs": "", "/metrics": ""} {
			status, text := s.Send("GET", path, "")
			if status == http.StatusNotFound {
				continue
			}
			if status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s: %d, without %s: %.500s", path, status, want, text)
			}
			hidden(path, text)
		}
		hidden("the report", reportContent(t, s.MustGet(base+"/report")))
		status, body := s.Send("POST", base+"/shares", "{}")
		var share struct{ URL string }
		if err := json.Unmarshal([]byte(body), &share); err != nil || status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
		hidden("a shared link", reportContent(t, s.MustGet(strings.TrimPrefix(share.URL, s.Base))))
		var f executions.Failures
		s.GetJSON("/api/v1/runs/"+id+"/failures", &f)
		if len(f.Failures) != 3 { // of the statement, of the one inside, and of its transaction
			t.Errorf("%d errors: %+v", len(f.Failures), f.Failures)
		}
		for _, e := range f.Failures {
			if e.Messages != 1 || e.ErrorClass != "data" || e.ErrorCode == "" {
				t.Errorf("%+v", e)
			}
		}
		if mode == "plain" {
			for _, e := range s.Parameters("POST", id, "why=failed").Executions {
				if !strings.Contains(e.ErrorMessage, `"`+messageOnlyValue+`"`) {
					t.Errorf("who asks is told %q", e.ErrorMessage)
				}
			}
		}
	}
	hidden("the server's log", s.Out.String())
}
