package cli

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/net/html"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// checkShown looks at everything that shows what was stored.
func (k *textFixture) checkShown(d document) {
	t := k.T
	run := k.ids["runs"]
	other := k.secondRun()
	requested := map[string]string{
		"/api/v1/schedule-times": "?cron=@yearly",
		"/api/compare":           "?a=" + run + "&b=" + other, "/api/v1/compare/parts": "?a=" + run + "&b=" + other,
		"/api/v1/compare/report": "?runs=" + run + "," + other, "/api/v1/reports": "?runs=" + run + "," + other,
	}
	bearer := []string{"Authorization", "Bearer " + k.secret}
	media := map[string]int{}
	look := func(path string) {
		t.Helper()
		a := k.Exchange(http.MethodGet, path, "", bearer...)
		for end := time.Now().Add(clitest.StartTimeout); a.Status == http.StatusConflict && time.Now().Before(end); {
			time.Sleep(time.Second) // what is reckoned of a run comes some seconds after it
			a = k.Exchange(http.MethodGet, path, "", bearer...)
		}
		if a.Status != http.StatusOK {
			t.Errorf("GET %s: %d %.300s", path, a.Status, a.Body)
			return
		}
		media[a.MediaType()]++
		if wrong := textProblemFor(a); wrong != "" {
			t.Errorf("GET %s: %s", path, wrong)
		}
	}
	paths, _ := d["paths"].(map[string]any)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if d.at(paths[path], "get") == nil || strings.HasPrefix(path, "/ws/") || strings.HasPrefix(path, "/shared/") ||
			strings.HasPrefix(path, "/api/auth/oidc") || skippedOperations["GET "+path] != "" {
			continue
		}
		at := path
		for strings.Contains(at, "{") {
			name := at[strings.Index(at, "{")+1 : strings.Index(at, "}")]
			id := k.id(path, name)
			if id == "none" {
				t.Errorf("GET %s: of what? say so in prepare()", path)
			}
			at = strings.Replace(at, "{"+name+"}", url.PathEscape(id), 1)
		}
		look(at + requested[path])
	}
	look("/api/audit?limit=500")
	look("/api/audit/export?format=json")
	look("/api/runs/" + run + "/executions?format=csv")
	look("/api/v1/runs/" + run + "/executions?limit=500")
	for _, format := range []string{"csv", "json"} {
		body, err := json.Marshal(map[string]any{"format": format,
			"sql": "SELECT " + quotedExpression(k.worstText()) + " AS \"=a<b>\u202e\""})
		if err != nil {
			t.Fatal(err)
		}
		a := k.Exchange(http.MethodPost, "/api/query/export", string(body), bearer...)
		media[a.MediaType()]++
		if wrong := textProblemFor(a); wrong != "" || a.Status != http.StatusOK {
			t.Errorf("an export as %s: %d %s", format, a.Status, wrong)
		}
	}
	k.checkShare(media)
	for _, want := range []string{"application/json", "text/csv", "text/html", "text/plain", "application/zip"} {
		if media[want] == 0 {
			t.Errorf("nothing was shown as %s", want)
		}
	}
	t.Logf("what was stored was shown as %v", media)
	k.checkPrinted(run, other)
	for line := range strings.Lines(k.Out.String()) {
		if wrong := controlSequenceAt(line); wrong != "" {
			t.Errorf("the log: %s", wrong)
			break
		}
	}
}

// secondRun is a run beside the first one, by the command line: what it prints is looked at, too.
func (k *textFixture) secondRun() string {
	k.T.Helper()
	p := &clitest.Program{T: k.T, Dir: k.T.TempDir()}
	scenario := k.scenario()
	scenario["name"], scenario["tags"] = k.worstText(), map[string]any{"a": "=1+1"}
	text, err := json.Marshal(scenario)
	if err != nil {
		k.T.Fatal(err)
	}
	file := p.Write("run.yaml", string(text))
	junit, out := p.Path("junit.xml"), p.Path("out.json")
	code, message := p.Command("run", file, "--server", k.Base, "--token", k.secret, "--junit", junit, "--out", out)
	if wrong := controlSequenceAt(
		strings.ReplaceAll(message, "\r", ""),
	); wrong != "" || code > 1 ||
		strings.Contains(message, "panic") {
		k.T.Errorf("loadstone run: exit %d, %s\n%.600s", code, wrong, message)
	}
	raw, err := os.ReadFile(junit)
	if err != nil {
		k.T.Fatalf("%v\n%s", err, message)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(raw)); ; {
		if _, err := decoder.Token(); err != nil {
			if !errors.Is(err, io.EOF) {
				k.T.Errorf("JUnit: %v", err)
			}
			break
		}
	}
	if wrong := controlSequenceAt(string(raw)); wrong != "" {
		k.T.Errorf("JUnit: %s", wrong)
	}
	var s struct {
		RunID string `json:"run_id"`
	}
	if raw, err = os.ReadFile(out); err != nil || json.Unmarshal(raw, &s) != nil || s.RunID == "" {
		k.T.Fatalf("%v: %.300s\n%s", err, raw, message)
	}
	return s.RunID
}

// checkPrinted looks at what commands print.
func (k *textFixture) checkPrinted(run, other string) {
	k.T.Helper()
	p := &clitest.Program{T: k.T, Dir: k.T.TempDir()}
	at := []string{"--server", k.Base, "--token", k.secret}
	for _, args := range [][]string{
		{"table", "list"}, {"table", "show", "kept"}, {"table", "history", "kept"}, {"user", "list"}, {"user", "tokens"},
		{"node", "list"}, {"node", "token", "list"},
		{"compare", run, other, "--csv", p.Path("c.csv"), "--html", p.Path("c.html")},
		{"report", run, "--out", p.Path("r.html")}, {"sql", "SELECT * FROM rollup.runs LIMIT 200"},
		{"sql", "SELECT " + quotedExpression(k.worstText())}, {"sql", "SHOW QUERIES"},
	} {
		code, message := p.Command(append(slices.Clone(args), at...)...)
		if wrong := controlSequenceAt(message); wrong != "" || strings.Contains(message, "unknown flag") ||
			strings.Contains(message, "unexpected argument") || code == 2 && args[0] != "compare" {
			k.T.Errorf("loadstone %.100q: exit %d, %s\n%.600s", args, code, wrong, message)
		}
	}
	for name, look := range map[string]func(raw []byte) string{"c.csv": csvWrong, "c.html": htmlWrong,
		"r.html": htmlWrong} {
		raw, err := os.ReadFile(p.Path(name))
		if err != nil {
			k.T.Error(err)
			continue
		}
		if wrong := look(raw); wrong != "" {
			k.T.Errorf("%s: %s", name, wrong)
		}
	}
}

// checkShare looks at what a stranger is shown by a link.
func (k *textFixture) checkShare(media map[string]int) {
	k.T.Helper()
	var link struct{ URL, Link string }
	k.post("/api/runs/"+k.ids["runs"]+"/shares", map[string]any{"expires_in_days": 1}, &link)
	address, err := url.Parse(link.URL + link.Link)
	if err != nil || address.Path == "" {
		k.T.Fatalf("a link: %+v, %v", link, err)
	}
	a := k.Exchange(http.MethodGet, address.Path, "", "X-Nobody", "1")
	for end := time.Now().Add(clitest.StartTimeout); a.Status == http.StatusTooManyRequests && time.Now().Before(end); {
		time.Sleep(time.Second) // bad links were tried from this address
		a = k.Exchange(http.MethodGet, address.Path, "", "X-Nobody", "1")
	}
	media[a.MediaType()]++
	if wrong := textProblemFor(a); wrong != "" || a.Status != http.StatusOK {
		k.T.Errorf("what a stranger is shown: %d %s", a.Status, wrong)
	}
}

// textProblemFor is what is wrong with an answer for whoever opens it.
func textProblemFor(a clitest.Response) string {
	if given := a.Header.Get("Content-Disposition"); given != "" {
		_, p, err := mime.ParseMediaType(given)
		name := p["filename"]
		if err != nil || name == "" || controlSequenceAt(name) != "" || strings.ContainsAny(name, "/\\:*?\"<>|\n\t") ||
			strings.HasPrefix(name, ".") || len(name) > 255 {
			return fmt.Sprintf("a file called %q (%v)", name, err)
		}
	}
	if strings.HasPrefix(a.MediaType(), "text/html") {
		return htmlWrong(a.Body)
	}
	switch a.MediaType() {
	case "text/csv":
		return csvWrong(a.Body)
	case "application/zip":
		return zipWrong(a.Body)
	case "text/plain":
		parser := expfmt.NewTextParser(model.UTF8Validation)
		if _, err := parser.TextToMetricFamilies(bytes.NewReader(a.Body)); err != nil {
			return err.Error()
		}
		return controlSequenceAt(string(a.Body))
	case "application/x-ndjson":
		for line := range bytes.Lines(a.Body) {
			if !json.Valid(line) {
				return fmt.Sprintf("no JSON: %.300q", line)
			}
		}
	}
	return textProblem(a)
}

func zipWrong(raw []byte) string {
	archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return err.Error()
	}
	for _, f := range archive.File {
		if strings.ContainsAny(f.Name, "/\\:*?\"<>|") || controlSequenceAt(f.Name) != "" || strings.HasPrefix(f.Name, ".") {
			return fmt.Sprintf("a file called %q", f.Name)
		}
		in, err := f.Open()
		if err != nil {
			return err.Error()
		}
		text, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			return err.Error()
		}
		if strings.HasSuffix(f.Name, ".html") {
			if wrong := htmlWrong(text); wrong != "" {
				return f.Name + ": " + wrong
			}
		}
	}
	return ""
}

// number is what may begin with a sign in a spreadsheet.
var number = regexp.MustCompile(`^[-+]?([0-9.]+(e[-+]?[0-9]+)?|Infinity)$`)

// csvWrong is the first cell that a spreadsheet would take for a formula, whatever is not seen before its sign.
func csvWrong(raw []byte) string {
	in := csv.NewReader(bytes.NewReader(raw))
	in.FieldsPerRecord = -1
	rows, err := in.ReadAll()
	if err != nil {
		return err.Error()
	}
	for _, row := range rows {
		for _, cell := range row {
			seen := strings.TrimLeftFunc(cell, func(r rune) bool {
				return unicode.IsSpace(r) && r != '\t' && r != '\r' || unicode.Is(unicode.Cf, r)
			})
			if seen != "" && strings.ContainsRune("=+-@\t\r", []rune(seen)[0]) && !number.MatchString(cell) {
				return fmt.Sprintf("a formula: %.100q", cell)
			}
		}
	}
	return ""
}

// htmlWrong is what of a page is not Loadstone's own: an element that acts, but its scripts, or an attribute that does.
func htmlWrong(raw []byte) string {
	page, err := html.Parse(bytes.NewReader(raw))
	if err != nil {
		return err.Error()
	}
	for n := range page.Descendants() {
		if n.Type == html.TextNode && n.Parent != nil && n.Parent.Data != "script" && n.Parent.Data != "style" {
			if wrong := controlSequenceAt(strings.ReplaceAll(n.Data, "\r", "")); wrong != "" {
				return wrong
			}
		}
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Val)), "javascript:") {
				return fmt.Sprintf("<%s %s=%.100q>", n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "img" || n.Data == "iframe" || n.Data == "object" || n.Data == "embed" || n.Data == "base" {
			return "an element <" + n.Data + ">"
		}
		if n.Data == "script" && n.FirstChild != nil && strings.HasPrefix(n.FirstChild.Data, "window.owned") {
			return "a script of somebody else's"
		}
	}
	return ""
}

// TestWhatIsWrongIsSeen: what looks at outputs sees the faults that it is there for.
func TestWhatIsWrongIsSeen(t *testing.T) {
	for _, bad := range []string{"=1", "a,+x", "a,\u00a0=1", "\ufeff@x", "\"\t=1\""} {
		if csvWrong([]byte(bad+"\n")) == "" {
			t.Errorf("no formula is seen in %q", bad)
		}
	}
	for _, bad := range []string{"<p onclick=x>", "<img src=x>", "<script>window.owned=1</script>", "<p>\u202ex",
		"<a href=' javascript:x'>a</a>"} {
		if htmlWrong([]byte(bad)) == "" {
			t.Errorf("nothing is seen in %q", bad)
		}
	}
	if csvWrong([]byte("a,-1.5,'=1\n")) != "" || htmlWrong([]byte("<p>&lt;img&gt;</p><script>a()</script>")) != "" {
		t.Error("what is fine is not")
	}
	for _, bad := range []string{"a\x1b", "\u009b", "\u202e", "\u2028", "\x7f"} {
		if controlSequenceAt(bad) == "" {
			t.Errorf("%q is not seen", bad)
		}
	}
}
