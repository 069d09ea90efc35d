package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// slowTemplate is a template whose statement takes 2 ms in the database, and 50 ms once there is a table slow.
const slowTemplate = `name: %s
target: {connection: playground}
workload:
  plugin: sql
  params:
    statements: [{id: wait, sql: "SELECT pg_sleep(CASE WHEN to_regclass('slow') IS NULL THEN 0.002 ELSE 0.05 END)"}]
  concurrent_connections: 2
  duration_seconds: %d
  warmup_seconds: 1
`

// TestARunThatIsSlowerThanItsBaselineIsTold: run, baseline, a slower run of the same template, and one that fails, each
// told to a webhook and a chat as what it is.
func TestARunThatIsSlowerThanItsBaselineIsTold(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	message, chat := make(chan notify.Notice, 20), make(chan string, 20)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chat" {
			var v struct{ Text string }
			if err := json.Unmarshal(body, &v); err != nil {
				t.Errorf("%v: %s", err, body)
			}
			chat <- v.Text
			return
		}
		var v notify.Notice
		if err := json.Unmarshal(body, &v); err != nil || r.Header.Get("X-Loadstone-Event") != string(v.Event) {
			t.Errorf("%v: %s, %v", err, body, r.Header)
		}
		message <- v
	}))
	defer receiver.Close()
	s := clitest.NewProgram(t).Serve()
	defer s.Stop()
	const all = `"events":["finished","failed","regressed"]`
	hooks := fmt.Sprintf(`{"version":0,"hooks":[{"name":"ci","kind":"webhook","url":"%s/ci",%s},
		{"name":"room","kind":"slack","url":"%s/chat",%s}]}`, receiver.URL, all, receiver.URL, all)
	if status, body := s.Send("PUT", "/api/v1/notifications", hooks); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	var template struct {
		TemplateID string `json:"template_id"`
		Version    int    `json:"version"`
	}
	save := func(method, path, text string) {
		t.Helper()
		in, _ := json.Marshal(map[string]any{"source": text, "version": template.Version})
		if method == "POST" {
			in, _ = json.Marshal(map[string]any{"source": text})
		}
		status, body := s.Send(method, path, string(in))
		if err := json.Unmarshal([]byte(body), &template); err != nil || status/100 != 2 {
			t.Fatalf("%d %s", status, body)
		}
	}
	next := func(what string) (v notify.Notice, text string) {
		t.Helper()
		for v.RunID == "" || text == "" {
			select {
			case v = <-message:
			case text = <-chat:
			case <-time.After(clitest.StartTimeout):
				t.Fatalf("%s: nobody was told: %+v, %q", what, v, text)
			}
		}
		return v, text
	}
	second := func() engine.RunDetail {
		return runToEnd(t, s, fmt.Sprintf(`{"template_id":%q,"start":true}`, template.TemplateID))
	}
	// What is measured for less than 20 s is not judged.
	save("POST", "/api/templates", fmt.Sprintf(slowTemplate, "held", 21))
	first := second()
	if v, text := next("the first"); v.Event != notify.Finished || v.Baseline != nil || v.RunID != first.RunID ||
		!strings.Contains(text, "Run held completed.") {
		t.Errorf("the first: %+v, %q", v, text)
	}
	path := "/api/templates/" + template.TemplateID
	if status, body := s.Send("PUT", path+"/baseline", `{"run_id":"`+first.RunID+`"}`); status/100 != 2 {
		t.Fatalf("%d %s", status, body)
	}
	// The workload stays what it was: a comparison with another one is not judged.
	made := runToEnd(
		t,
		s,
		`{"source":"name: slow\ntarget: {connection: playground, table_name: slow, prepare: {rows: 10}}`+
			`\nworkload: {plugin: mix, concurrent_connections: 1, duration_seconds: 1, warmup_seconds: 0}\n","start":true}`,
	)
	if v, _ := next("the run that makes the table"); v.RunID != made.RunID || made.Status != engine.StatusCompleted {
		t.Fatalf("the table is not made: %+v, %s", v, made.Status)
	}
	slower := second()
	if v, text := next("the slower one"); v.Event != notify.Regressed || v.RunID != slower.RunID || v.Baseline == nil ||
		v.Baseline.Verdict != compare.Worse || v.Baseline.BaselineRunID != first.RunID || len(v.Baseline.Worse) == 0 ||
		!strings.Contains(text, "is worse than its baseline. ") || v.TemplateName != "held" {
		t.Errorf("the slower one: %+v, %+v, %q", v, v.Baseline, text)
	}
	// The name is whatever its user writes; a chat neither obeys it nor calls anybody.
	const odd = "\u202eheld\x1b]8;;http://x\x07 <!channel> <http://x|y> & @here [z](http://z)"
	quoted, err := json.Marshal(odd)
	if err != nil {
		t.Fatal(err)
	}
	save("PUT", path, strings.Replace(fmt.Sprintf(slowTemplate, string(quoted), 2), "pg_sleep(",
		"1/(SELECT 0) + pg_sleep(", 1))
	failed := second()
	v, text := next("one that fails")
	if failed.Status != engine.StatusFailed || v.Event != notify.Failed || v.Baseline != nil ||
		v.RunName != failed.RunName {
		t.Errorf("one that fails: %s, %+v", failed.Status, v)
	}
	if !strings.HasPrefix(text, "Run held]8;;http://x &lt;!channel&gt; &lt;http://x|y&gt; &amp; @ here [z] (http://z) "+
		"failed: ") || strings.ContainsAny(text, "\u202e\x1b\x07") {
		t.Errorf("one that fails: %q", text)
	}
}

// TestReceiversThatDoNotTake: one that answers 500, one that leads elsewhere, one that nobody listens at, one that
// never answers and one whose answer a terminal would obey. Each is said in words; nobody is told what was for another.
func TestReceiversThatDoNotTake(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	var remote, came atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { remote.Add(1) }))
	defer other.Close()
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/elsewhere":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/never":
			<-release
		case "/escapes":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte("\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x00no"))
		case "/later":
			if came.Add(1) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}))
	defer receiver.Close()
	defer close(release)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	s := clitest.NewProgram(t).Serve()
	defer s.Stop()
	wants := map[string]string{"500": "the endpoint answers 500", "elsewhere": "redirects are not followed",
		"never": "the endpoint has not answered for 20s", "escapes": "the endpoint answers 400", "gone": "refused"}
	var hooks []string
	for name := range wants {
		at := receiver.URL + "/" + name
		if name == "gone" {
			at = gone.URL + "/to-ken"
		}
		hooks = append(hooks, fmt.Sprintf(`{"name":%q,"kind":"webhook","url":%q,"secret":"secret-word","events":["failed"]}`,
			name, at))
	}
	hooks = append(hooks, fmt.Sprintf(`{"name":"later","kind":"slack","url":"%s/later","events":["finished"]}`,
		receiver.URL))
	status, body := s.Send("PUT", "/api/v1/notifications", `{"version":0,"hooks":[`+strings.Join(hooks, ",")+`]}`)
	var list notify.HookList
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	var each sync.WaitGroup
	for _, h := range list.Hooks {
		if h.Name == "later" {
			continue
		}
		each.Go(func() {
			began := time.Now()
			status, body := s.Send("POST", "/api/v1/notifications/"+h.ID+"/test", "{}")
			var d notify.Delivery
			if err := json.Unmarshal([]byte(body), &d); err != nil || status != 200 || d.Delivered ||
				!strings.Contains(d.Error, wants[h.Name]) {
				t.Errorf("%s: %d %s", h.Name, status, body)
			}
			if strings.ContainsAny(d.Error, "\x1b\x07\x00\u202e") || strings.Contains(body, "to-ken") ||
				strings.Contains(body, "secret-word") {
				t.Errorf("%s: %q", h.Name, body)
			}
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("%s: the answer took %v", h.Name, took)
			}
		})
	}
	// Meanwhile a run ends, and one that does not take it at first is told again.
	run := runTemplate(t, s, "name: later\ntarget: {connection: playground, table_name: orders, prepare: {rows: 1000, "+
		"if_exists: use}}\nworkload: {plugin: mix, concurrent_connections: 2, duration_seconds: 1, warmup_seconds: 0}\n")
	clitest.WaitFor(t, clitest.StartTimeout, "second attempt", func() bool { return came.Load() == 2 })
	each.Wait()
	var kept struct{ Deliveries []notify.Delivery }
	clitest.WaitFor(t, clitest.StartTimeout, "note of the second attempt", func() bool {
		if err := json.Unmarshal([]byte(s.MustGet("/api/v1/notifications")), &kept); err != nil {
			t.Fatal(err)
		}
		arrived := 0
		for _, d := range kept.Deliveries {
			if d.RunID == run.RunID && d.Delivered && d.Attempt == 2 {
				arrived++
			}
		}
		return arrived == 1
	})
	if remote.Load() != 0 {
		t.Error("a redirect was followed")
	}
}
