package server_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
)

const reportScript = `document.title = "</script><!-- drawn";`

func withReports(o *server.Options) {
	files := o.UI.(fstest.MapFS)
	files["report/report.js"] = &fstest.MapFile{Data: []byte(reportScript)}
	files["report/report.css"] = &fstest.MapFile{Data: []byte("body { margin: 0 }")}
}

// over makes a run that has completed.
func (b *bench) over(name string) string {
	b.t.Helper()
	s := scenario(name)
	run := decode[engine.Run](b.t, b.do("POST", "/api/runs", map[string]any{"scenario": s, "start": true}).want(b.t, 201))
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusStopping)
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusCompleted)
	return run.RunID
}

var packed = regexp.MustCompile(`<script type="text/plain" id="content">([^<]*)</script>`)

// contentOf unpacks what a report shows.
func contentOf(t *testing.T, page []byte) map[string]any {
	t.Helper()
	m := packed.FindSubmatch(page)
	if m == nil {
		t.Fatalf("no content in %.300s", page)
	}
	zipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

const hostile = `</script><script>alert(1)</script>"><img src=x onerror=alert(1)> ` + "\u202egnp.exe =cmd|'/c calc'!A1"

// TestReportOfARun reads the file: it holds the run, loads nothing, and nothing of the run can be taken for a script.
func TestReportOfARun(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	id := b.over(hostile)
	b.do("PUT", "/api/runs/"+id+"/note", map[string]any{"text": hostile, "version": 0}).want(t, 200)
	a := b.do("GET", "/api/runs/"+id+"/report", nil).want(t, 200)
	if d := a.Header.Get("Content-Disposition"); !strings.HasPrefix(d, `attachment; filename="script-script-alert`) ||
		strings.Count(d, `"`) != 2 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("headers %v", a.Header)
	}
	page := string(a.body)
	if strings.Contains(page, "<img") || strings.Contains(page, "alert(1)") && !strings.Contains(page, "&lt;script&gt;") ||
		strings.Contains(page, "\u202e") || strings.Count(page, "</script>") != 2 || strings.Contains(page, "<!-- drawn") {
		t.Errorf("the page lets something out: %s", page)
	}
	if !regexp.MustCompile(`Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^']{44}';`).
		MatchString(page) || regexp.MustCompile(`(src|href)="(https?:)?/`).MatchString(page) {
		t.Errorf("the page may load something: %.900s", page)
	}
	c := contentOf(t, a.body)
	run := c["run"].(map[string]any)
	if run["run_id"] != id || run["test_name"] != hostile || c["note"] != hostile || c["version"] != "1.2.3" ||
		run["summary"] == nil {
		t.Errorf("content %v", c)
	}
	b.do("GET", "/api/runs/nobody/report", nil).problem(t, 404, engine.CodeNotFound)
	fresh := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}).want(t, 201))
	b.do("GET", "/api/runs/"+fresh.RunID+"/report", nil).problem(t, 409, engine.CodeConflict)
	b.do("GET", "/report/report.js", nil, "Authorization", "").want(t, 404)
}

// TestAReportHasNoSecret looks for the password of an inline connection in every form of it.
func TestAReportHasNoSecret(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	const secret = "s3cr3t-pass"
	s := scenario("secret")
	s["target"].(map[string]any)["connection"] = map[string]any{"driver": "postgres",
		"dsn": "postgres://u:" + secret + "@h:5432/d"}
	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": s, "start": true}).want(t, 201))
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusStopping)
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusCompleted)
	text, err := json.Marshal(contentOf(t, b.do("GET", "/api/runs/"+run.RunID+"/report", nil).want(t, 200).body))
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "dsn_sealed") ||
		!strings.Contains(string(text), run.RunID) {
		t.Errorf("%v: %s", err, text)
	}
}

func (b *bench) share(id string) (api.NewShare, string) {
	b.t.Helper()
	s := decode[api.NewShare](b.t, b.do("POST", "/api/runs/"+id+"/shares", "{}").want(b.t, 201))
	link, err := url.Parse(s.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	return s, link.Path
}

// TestAShareShowsItsReportAndNothingElse opens a link as a stranger, and tries its secret at every other address.
func TestAShareShowsItsReportAndNothingElse(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	id := b.over("shared")
	s, path := b.share(id)
	if !strings.HasPrefix(path, "/shared/lsr_") || len(path) < len("/shared/lsr_")+43 {
		t.Fatalf("the link %s", s.URL)
	}
	open := func(path string) answer { return b.do("GET", path, nil, "Authorization", "") }
	a := open(path).want(t, 200)
	if contentOf(t, a.body)["run"].(map[string]any)["run_id"] != id {
		t.Error("another run is shown")
	}
	if p := a.Header.Get("Content-Security-Policy"); !strings.Contains(p, "sandbox allow-scripts") ||
		strings.Contains(p, "allow-same-origin") || !strings.Contains(p, "default-src 'none'") ||
		a.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("headers %v", a.Header)
	}
	list := decode[api.ShareList](t, b.do("GET", "/api/v1/shares?run_id="+id, nil).want(t, 200))
	if len(list.Shares) != 1 || list.Shares[0].UseCount != 1 || list.Shares[0].RunName != "shared" {
		t.Errorf("shares %+v", list)
	}
	secret := strings.TrimPrefix(path, "/shared/")
	if text := b.do("GET", "/api/v1/shares", nil).want(t, 200).body; bytes.Contains(text, []byte(secret[4:])) {
		t.Error("the secret is listed")
	}
	if strings.Contains(b.log.String(), secret[4:]) {
		t.Error("the secret is in the log")
	}
	tried := 0
	for _, r := range b.srv.Routes() {
		if !strings.HasPrefix(r.Path, "/api") && !strings.HasPrefix(r.Path, "/ws") && !strings.HasPrefix(r.Path,
			"/prometheus") &&
			r.Path != "/metrics" || r.Path == "/api/auth/signin" || r.Path == "/api/auth/ways" {
			continue
		}
		at := strings.NewReplacer(":id", id, ":name", id, ":ref", id).Replace(r.Path)
		for _, header := range [][]string{{"Authorization", "Bearer " + secret},
			{"Authorization", "", "Cookie", auth.CookieName + "=" + secret}} {
			tried++
			if status := b.do(r.Method, at, nil, header...).StatusCode; status != http.StatusUnauthorized &&
				status != http.StatusForbidden {
				t.Errorf("%s %s with the secret of a link: status %d", r.Method, at, status)
			}
		}
	}
	if tried < 150 {
		t.Errorf("%d requests were tried", tried)
	}
	for _, other := range []string{"/shared/", "/shared/x", path + "x", path[:len(path)-1], "/shared/lsr_" +
		strings.Repeat("A", 43),
		"/shared/..%2f..%2fapi%2fruns"} {
		if a := open(other); a.StatusCode == http.StatusOK && bytes.Contains(a.body, []byte(id)) {
			t.Errorf("%s shows the run", other)
		}
	}
	b.do("DELETE", "/api/v1/shares/"+s.ShareID, nil).want(t, 204)
	b.do("DELETE", "/api/v1/shares/"+s.ShareID, nil).problem(t, 404, engine.CodeNotFound)
	open(path).want(t, 404)
	for _, action := range []string{"share.create", "share.open", "share.end"} {
		if !strings.Contains(strings.Join(b.store.actions(), " "), action) {
			t.Errorf("%s is not in the audit log: %v", action, b.store.actions())
		}
	}
}

// TestALinkSaysWhyItShowsNothing opens links that are over, of runs that are gone or go on.
func TestALinkSaysWhyItShowsNothing(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	says := func(path string, status int, words string) {
		t.Helper()
		a := b.do("GET", path, nil, "Authorization", "").want(t, status)
		if !bytes.Contains(a.body, []byte(words)) || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %s", words, a.body)
		}
	}
	id := b.over("gone")
	_, path := b.share(id)
	b.do("GET", path, nil, "Authorization", "").want(t, 200) // it is kept for a moment
	b.do("DELETE", "/api/runs/"+id, nil).want(t, 204)
	says(path, 410, "The run was deleted")

	old := b.over("old")
	secret, hash := auth.NewSecret("lsr_")
	if _, err := b.store.CreateShare(t.Context(), store.Share{RunID: old,
		ExpiresAt: engine.At(time.Now().Add(-time.Hour))}, hash); err != nil {
		t.Fatal(err)
	}
	says("/shared/"+secret, 410, "This link has expired")

	going := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("on"), "start": true}).
		want(t, 201))
	_, path = b.share(going.RunID)
	says(path, 409, "not over yet")

	for _, days := range []any{0, -1, 366, "x"} {
		if days == 0 {
			continue // left out
		}
		b.do("POST", "/api/runs/"+old+"/shares", map[string]any{"expires_in_days": days}).problem(t, 422, engine.CodeInvalid)
	}
	b.do("POST", "/api/runs/nobody/shares", "{}").problem(t, 404, engine.CodeNotFound)
	b.do("POST", "/api/runs/"+old+"/shares", map[string]any{"forever": true}).problem(t, 422, engine.CodeInvalid)

	refused := 0
	for range 20 {
		guess, _ := auth.NewSecret("lsr_")
		if a := b.do("GET", "/shared/"+guess, nil, "Authorization", ""); a.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("%d of 20 guesses were refused unheard", refused)
	}
}

// TestNotesTagsAndBaselinesOverHTTP writes about a run, tags it, and makes it the baseline of its template.
func TestNotesTagsAndBaselinesOverHTTP(t *testing.T) {
	t.Parallel()
	b := start(t)
	tpl := decode[store.Template](t, b.do("POST", "/api/templates", map[string]any{"source": yamlText}).want(t, 201))
	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"template_id": tpl.TemplateID, "start": true}).
		want(t, 201))
	base := "/api/runs/" + run.RunID
	b.do("PUT", base+"/tags", map[string]any{"tags": map[string]any{"a": "b"}}).problem(t, 409, engine.CodeConflict)
	b.do("PUT", "/api/templates/"+tpl.TemplateID+"/baseline", map[string]any{"run_id": run.RunID}).
		problem(t, 409, engine.CodeConflict)
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusStopping)
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusCompleted)

	none := decode[store.RunNote](t, b.do("GET", base+"/note", nil).want(t, 200))
	first := decode[store.RunNote](t, b.do("PUT", base+"/note", map[string]any{"text": hostile, "version": none.Version}).
		want(t, 200))
	if first.Version != 1 || first.Text != hostile || first.UpdatedBy != "admin" {
		t.Errorf("note %+v", first)
	}
	if p := b.do("PUT", base+"/note", map[string]any{"text": "late", "version": 0}).problem(t, 409,
		engine.CodeConflict); p.
		Errors[0].Field != "version" || !strings.Contains(p.Detail, "admin") {
		t.Errorf("problem %+v", p)
	}
	b.do("PUT", base+"/note", map[string]any{"text": strings.Repeat("n", 10001), "version": 1}).
		problem(t, 422, engine.CodeInvalid)
	b.do("PUT", base+"/note", map[string]any{"text": "x"}).problem(t, 422, engine.CodeInvalid)
	b.do("GET", "/api/runs/nobody/note", nil).problem(t, 404, engine.CodeNotFound)

	b.do("PUT", base+"/tags", map[string]any{"tags": map[string]any{"ticket": "PERF-9"}}).want(t, 200)
	if p := b.do("PUT", base+"/tags", map[string]any{"tags": map[string]any{"late": "x"}, "was": map[string]any{}}).
		problem(t, 409, engine.CodeConflict); len(p.Errors) != 1 || p.Errors[0].Field != "was" {
		t.Errorf("tags that were changed meanwhile: %+v", p)
	}
	found := decode[store.RunList](t, b.do("GET", "/api/runs?tag=ticket:PERF-9&sort=p95_ms&order=asc", nil).want(t, 200))
	if len(found.Runs) != 1 || b.store.lastFilter.Sort != store.SortP95 || !b.store.lastFilter.Ascending {
		t.Errorf("found %+v with %+v", found, b.store.lastFilter)
	}
	b.do("GET", "/api/runs?thresholds=failed", nil).want(t, 200)
	if p := b.store.lastFilter.Passed; p == nil || *p || b.store.lastFilter.Sorted() {
		t.Errorf("filter %+v", b.store.lastFilter)
	}
	b.do("GET", "/api/runs?sort=secret", nil).problem(t, 422, engine.CodeInvalid)
	if p := b.do("PUT", base+"/tags", map[string]any{"tags": map[string]any{"x\n": "y"}}).
		problem(t, 422, engine.CodeInvalid); p.Errors[0].Field != "tags" {
		t.Errorf("problem %+v", p)
	}

	baseline := "/api/templates/" + tpl.TemplateID + "/baseline"
	// A template without one is no mistake of who asks, as is one that is not there.
	none204 := func() {
		t.Helper()
		if a := b.do("GET", baseline, nil).want(t, 204); len(a.body) != 0 {
			t.Errorf("no baseline: %s", a.body)
		}
	}
	none204()
	b.do("GET", "/api/templates/nobody/baseline", nil).problem(t, 404, engine.CodeNotFound)
	b.do("PUT", baseline, map[string]any{"run_id": run.RunID}).want(t, 200)
	if set := decode[store.Baseline](t, b.do("GET", baseline, nil).want(t, 200)); set.RunID != run.RunID ||
		set.SetBy != "admin" {
		t.Errorf("baseline %+v", set)
	}
	b.do("PUT", baseline, map[string]any{"run_id": "nobody"}).problem(t, 404, engine.CodeNotFound)
	b.do("DELETE", baseline, nil).want(t, 204)
	none204()
}

// TestATokenMakesNoLinks asks for a link with a token that may write: it would outlive the token.
func TestATokenMakesNoLinks(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	id := b.over("shared")
	writer, _ := b.mint(auth.ScopeWrite)
	b.do("POST", "/api/runs/"+id+"/shares", "{}", "Authorization", "Bearer "+writer).
		problem(t, 403, engine.CodeForbidden)
	admin, _ := b.mint(auth.ScopeAdmin)
	b.do("POST", "/api/runs/"+id+"/shares", "{}", "Authorization", "Bearer "+admin).want(t, 201)
}

// TestALinkIsNotedOnce opens a link several times: the audit log has one line of it.
func TestALinkIsNotedOnce(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	_, path := b.share(b.over("shared"))
	for range 4 {
		b.do("GET", path, nil, "Authorization", "").want(t, 200)
	}
	if n := strings.Count(strings.Join(b.store.actions(), " "), "share.open"); n != 1 {
		t.Errorf("noted %d times", n)
	}
}

// TestASharedReportKnowsWhatWasWritten: a report that was opened a moment ago is not shown after its note or its tags
// have changed.
func TestASharedReportKnowsWhatWasWritten(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	id := b.over("written")
	_, path := b.share(id)
	shown := func() map[string]any {
		t.Helper()
		return contentOf(t, b.do("GET", path, nil, "Authorization", "").want(t, 200).body)
	}
	if c := shown(); c["note"] != "" {
		t.Fatalf("note %v", c["note"])
	}
	b.do("PUT", "/api/runs/"+id+"/note", map[string]any{"text": "first", "version": 0}).want(t, 200)
	if c := shown(); c["note"] != "first" {
		t.Errorf("note %v", c["note"])
	}
	b.do("PUT", "/api/runs/"+id+"/tags", map[string]any{"tags": map[string]any{"ticket": "PERF-9"}}).want(t, 200)
	if text, err := json.Marshal(shown()); err != nil || !strings.Contains(string(text), "PERF-9") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestAReportSaysWhereItsLogEnds: only when it is cut.
func TestAReportSaysWhereItsLogEnds(t *testing.T) {
	t.Parallel()
	const most = 2000
	b := start(t, withReports)
	id := b.over("talkative")
	add := func(from, to int) {
		t.Helper()
		tick := store.Tick{RunID: id}
		for i := from; i <= to; i++ {
			tick.Logs = append(tick.Logs, engine.LogEntry{Seq: int64(i), Level: engine.LogInfo, Message: "x"})
			if i == 1 { // as every log begins
				tick.Logs[0].Details = json.RawMessage(`{"note": {"code": "run_started", "user": "ada"}}`)
			}
		}
		if err := b.store.SaveTick(t.Context(), tick); err != nil {
			t.Fatal(err)
		}
	}
	report := func() (logs, leftOut []any) {
		t.Helper()
		c := contentOf(t, b.do("GET", "/api/runs/"+id+"/report", nil).want(t, 200).body)
		return c["logs"].([]any), c["left_out"].([]any)
	}
	add(1, most)
	if logs, leftOut := report(); len(logs) != most || len(leftOut) != 0 {
		t.Errorf("%d lines, left out %v", len(logs), leftOut)
	}
	add(most+1, most+1)
	if logs, leftOut := report(); len(logs) != most || len(leftOut) != 1 ||
		leftOut[0] != "the log after its first 2000 lines" {
		t.Errorf("%d lines, left out %v", len(logs), leftOut)
	}
}

// TestReportOfAComparison reads the file: it holds the runs in their order, loads nothing, and refuses what is none.
func TestReportOfAComparison(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	one, other := b.over(hostile), b.over("other")
	a := b.do("GET", "/api/v1/compare/report?tolerance_pct=7&runs="+other+","+one, nil).want(t, 200)
	page := string(a.body)
	if a.Header.Get("Content-Type") != "text/html; charset=utf-8" || strings.Contains(page, "alert(1)") ||
		strings.Count(page, "</script>") != 2 {
		t.Errorf("%v: the page lets something out: %.900s", a.Header, page)
	}
	c := contentOf(t, a.body)
	runs := c["compared"].([]any)
	first, second := runs[0].(map[string]any), runs[1].(map[string]any)
	if len(runs) != 2 || c["tolerance_pct"] != 7.0 || first["run"].(map[string]any)["run_id"] != other ||
		first["against"] != nil || second["run"].(map[string]any)["test_name"] != hostile || second["against"] == nil {
		t.Errorf("content %v", c)
	}
	if text, err := json.Marshal(c); err != nil || strings.Contains(string(text), `"created_by":"admin"`) {
		t.Errorf("%v: a person is named: %s", err, text)
	}
	fresh := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}).want(t, 201))
	ask := func(runs string) answer { return b.do("GET", "/api/v1/compare/report?runs="+runs, nil) }
	ask(one+","+fresh.RunID).problem(t, 409, engine.CodeConflict)
	ask(one+",nobody").problem(t, 404, engine.CodeNotFound)
	ask(one+","+one).problem(t, 422, engine.CodeInvalid)
	ask(one).problem(t, 422, engine.CodeInvalid)
	ask(strings.Repeat(one+",", 8)+other).problem(t, 422, engine.CodeInvalid)
}

// TestReportsOfSeveralRuns unpacks the archive: a file for each run that has figures, and a word about the others.
func TestReportsOfSeveralRuns(t *testing.T) {
	t.Parallel()
	b := start(t, withReports)
	one, other := b.over(hostile), b.over("../../etc/passwd")
	fresh := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}).want(t, 201))
	ask := func(runs ...string) answer {
		return b.do("GET", "/api/v1/reports?runs="+url.QueryEscape(strings.Join(runs, ",")), nil)
	}
	a := ask(one, other, one, fresh.RunID, "nobody\n\u202e").want(t, http.StatusOK)
	if a.Header.Get("Content-Type") != "application/zip" || !strings.Contains(a.Header.Get("Content-Disposition"),
		`filename="reports.zip"`) {
		t.Errorf("headers %v", a.Header)
	}
	z, err := zip.NewReader(bytes.NewReader(a.body), int64(len(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	if len(files) != 3 {
		t.Fatalf("%d files in the archive", len(files))
	}
	ids := map[string]bool{}
	for name, text := range files {
		if !regexp.MustCompile(`^[a-z0-9-]+-report\.html$|^missing\.txt$`).MatchString(name) {
			t.Errorf("a file is named %q", name)
		}
		if name != "missing.txt" {
			ids[contentOf(t, []byte(text))["run"].(map[string]any)["run_id"].(string)] = true
		}
	}
	if !ids[one] || !ids[other] {
		t.Errorf("the archive has %v, want %s and %s", ids, one, other)
	}
	if m := files["missing.txt"]; strings.Count(m, "\n") != 2 || !strings.Contains(m, fresh.RunID) ||
		!strings.Contains(m, "no figures yet") || strings.Contains(m, "\u202e") {
		t.Errorf("missing: %q", m)
	}
	ask(fresh.RunID, "nobody").problem(t, http.StatusConflict, engine.CodeConflict)
	ask("nobody").problem(t, http.StatusNotFound, engine.CodeNotFound)
	ask().problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
	ask(strings.Split(strings.Repeat("r,", 50)+"r", ",")...).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
}
