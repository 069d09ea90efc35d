package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/otlptest"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// Caller speaks to a server with a header of its own.
type Caller struct {
	T      *testing.T
	Base   string
	Header [2]string
}

// Try sends a request with a document, reads the answer into out, and returns the status, with what else than
// success it is.
func (c Caller) Try(method, path string, in, out any) (int, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.Base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", c.Base)
	req.Header.Set(c.Header[0], c.Header[1])
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err
	}
	if cookies := res.Cookies(); path == "/api/auth/signin" && len(cookies) > 0 {
		answer, _ = json.Marshal(cookies[0].Name + "=" + cookies[0].Value)
	}
	if res.StatusCode >= 300 {
		return res.StatusCode, fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	}
	if out == nil {
		return res.StatusCode, nil
	}
	return res.StatusCode, json.Unmarshal(answer, out)
}

// Do is Try for what has to succeed.
func (c Caller) Do(method, path string, in, out any) {
	c.T.Helper()
	var err error
	// A busy machine may take longer to compile a plugin than the request waits: its hint is to ask again.
	Until(c.T, StartTimeout, func() bool {
		_, err = c.Try(method, path, in, out)
		return err == nil || !strings.Contains(err.Error(), "is still being compiled")
	}, func() string { return fmt.Sprint(err) })
	if err != nil {
		c.T.Fatal(err)
	}
}

// Watch opens the socket of a live run.
func (c Caller) Watch(runID string) *websocket.Conn {
	c.T.Helper()
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second}
	conn, res, err := d.Dial(strings.Replace(c.Base, "http", "ws", 1)+"/ws/runs/"+runID,
		http.Header{c.Header[0]: {c.Header[1]}})
	if err != nil {
		c.T.Fatalf("opening a socket: %v", err)
	}
	_ = res.Body.Close()
	c.T.Cleanup(func() { _ = conn.Close() })
	return conn
}

// SignIn makes a session and a token of it. A link is good until there is another one, which a
// server that starts on the same store makes too: it is asked for again then.
func (c Caller) SignIn() (session, token Caller, secret string) {
	c.T.Helper()
	var cookie string
	var refused error
	Until(c.T, time.Minute, func() bool {
		var link map[string]string
		c.Do("POST", "/api/auth/signin-links", struct{}{}, &link)
		for _, text := range link {
			if _, once, ok := strings.Cut(text, "/signin?token="); ok {
				secret = once
			}
		}
		_, refused = c.Try("POST", "/api/auth/signin", map[string]string{"token": secret}, &cookie)
		return refused == nil
	}, func() string { return fmt.Sprint(refused) })
	session = Caller{c.T, c.Base, [2]string{"Cookie", cookie}}
	var made struct{ Secret string }
	session.Do("POST", "/api/auth/tokens", map[string]string{"name": "test"}, &made)
	return session, Caller{c.T, c.Base, [2]string{"Authorization", "Bearer " + made.Secret}}, made.Secret
}

// AwaitLoad waits until a run measures.
func (c Caller) AwaitLoad(runID string) {
	c.T.Helper()
	var d engine.RunDetail
	Until(c.T, StartTimeout, func() bool {
		c.Do("GET", "/api/runs/"+runID, nil, &d)
		if d.Status.Terminal() {
			c.T.Fatalf("the run is %s: %v", d.Status, d.CancellationReason)
		}
		return d.Phase == engine.PhaseMeasurement && d.Live != nil && d.Live.Ops.Total > 0
	}, func() string { return string(d.Status) })
}

// Until waits, so long at most, until something holds; about says how things stand where it never does.
func Until(t *testing.T, limit time.Duration, met func() bool, about func() string) {
	t.Helper()
	for begin := time.Now(); !met(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > limit {
			t.Fatalf("not after %v:\n%s", limit, about())
		}
	}
}

// Raw is an answer as it is.
func (c Caller) Raw(path string) (int, []byte) {
	c.T.Helper()
	req, err := http.NewRequestWithContext(c.T.Context(), http.MethodGet, c.Base+path, nil)
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set(c.Header[0], c.Header[1])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatalf("%s: %v", path, err)
	}
	return res.StatusCode, body
}

// UploadPlugin gives a server a plugin, and enables it.
func (c Caller) UploadPlugin(wasm []byte) (sha string) {
	c.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.Base+"/api/plugins",
		bytes.NewReader(wasm))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/wasm")
	req.Header.Set("Origin", c.Base)
	req.Header.Set(c.Header[0], c.Header[1])
	res, err := (&http.Client{Timeout: StartTimeout}).Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	var entry struct {
		SHA256 string `json:"sha256"`
	}
	if err := json.Unmarshal(text, &entry); err != nil || res.StatusCode != http.StatusCreated {
		c.T.Fatalf("uploading a plugin: %s %s", res.Status, text)
	}
	c.Do("POST", "/api/plugins/"+entry.SHA256+"/enable", struct{}{}, nil)
	return entry.SHA256
}

// Upload sends a file that is no plugin.
func (c Caller) Upload() (code int, answer string) {
	c.T.Helper()
	req, err := http.NewRequestWithContext(c.T.Context(), http.MethodPost, c.Base+"/api/plugins",
		strings.NewReader("\x00asm\x01\x00\x00\x00"))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/wasm")
	req.Header.Set("Origin", c.Base)
	req.Header.Set(c.Header[0], c.Header[1])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

// AwaitEnd waits until a run is over and its figures are there.
func (c Caller) AwaitEnd(runID string, served *Process) (d engine.RunDetail) {
	c.T.Helper()
	Until(c.T, StartTimeout, func() bool {
		if _, err := c.Try("GET", "/api/runs/"+runID, nil, &d); err != nil {
			return false
		}
		return d.Status.Terminal() && d.Phase == engine.PhaseNone && d.Summary != nil
	}, func() string { return fmt.Sprintf("%s/%s\n%s", d.Status, d.Phase, served.Out.String()) })
	return d
}

// CheckTrace looks at the trace of a finished run of two run workers on a node of another process: it hangs together
// over both processes, and log and metrics lead to it.
func (c Caller) CheckTrace(runID string, to *otlptest.Collector) {
	c.T.Helper()
	id := trace.ID(runID)
	count := func(name string) (found []otlptest.Span) {
		for _, s := range to.Trace(id) {
			if s.Name == name {
				found = append(found, s)
			}
		}
		return found
	}
	Until(c.T, time.Minute, func() bool { return len(count("run")) == 1 && len(count("run worker")) == 2 },
		func() string { return strings.Join(SpanNames(to.Trace(id)), ", ") })
	run := count("run")[0]
	by := map[string]otlptest.Span{}
	for _, s := range to.Trace(id) {
		if by[s.SpanID] = s; s.Fields["run_id"] != runID || s.Failed != "" {
			c.T.Errorf("%s says %v, %q", s.Name, s.Fields, s.Failed)
		}
	}
	for _, s := range to.Trace(id) {
		if _, there := by[s.ParentID]; !there && s.SpanID != run.SpanID {
			c.T.Errorf("%s is part of %q, which has not come", s.Name, s.ParentID)
		}
	}
	for name, want := range map[string]int{"assign": 2, "send START": 1, "send STOP": 1, "fetch artifact": 2, "load": 2,
		"set-up": 2, "phase MEASUREMENT": 1, "placement": 1} {
		if got := len(count(name)); got < want {
			c.T.Errorf("%d spans %q, want %d: %v", got, name, want, SpanNames(to.Trace(id)))
		}
	}
	for _, w := range count("run worker") {
		if w.Process["service.name"] != "loadstone-worker" || by[w.ParentID].Name != "assign" ||
			by[w.ParentID].Process["service.name"] != "loadstone-server" || w.Fields["worker_id"] == "" {
			c.T.Errorf("%+v is part of %+v", w, by[w.ParentID])
		}
	}
	for _, f := range count("fetch artifact") {
		if f.Fields["work_id"] == "" {
			c.T.Errorf("%v has no work_id", f.Fields)
		}
	}
	plain, _ := c.scrapeMetrics("")
	text, kind := c.scrapeMetrics("application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(text, "# EOF\n") {
		c.T.Errorf("the metrics are %s", kind)
	}
	for _, name := range []string{"loadstone_work_assignment_seconds", "loadstone_artifact_fetch_seconds",
		"loadstone_artifact_ready_to_fetch_seconds", "loadstone_run_tick_seconds"} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+"_bucket") && strings.Contains(line, `run_id="`+runID+`"`) &&
				strings.Contains(line, `trace_id="`+id+`"`) && strings.Contains(line, "} ")
		}) {
			c.T.Errorf("%s has no exemplar of the run", name)
		}
	}
	if strings.Contains(plain, runID) {
		c.T.Error("who asks for no OpenMetrics gets exemplars")
	}
}

// SpanNames are those of spans.
func SpanNames(spans []otlptest.Span) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

// scrapeMetrics are the metrics as who accepts that gets them.
func (c Caller) scrapeMetrics(accept string) (text, kind string) {
	c.T.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.Base+"/metrics", nil)
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header.Set(c.Header[0], c.Header[1])
	req.Header.Set("Accept", accept)
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return string(answer), res.Header.Get("Content-Type")
}
