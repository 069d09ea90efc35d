package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/retention"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
)

func TestMain(m *testing.M) {
	// A key of whoever runs the tests is none of theirs, and tests that run side by side set no variable.
	_ = os.Unsetenv(keyring.KeyEnv)
	// Servers and their answers are made and dropped all the time: collecting them took a fifth of a processor.
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(pgtest.M{M: m}, targettest.SnowflakeDriverLeak(),
		// fasthttp caches the date and cleans its pools for the life of the process.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/gofiber/fiber/v2/utils.StartTimeStampUpdater.func1"),
		goleak.IgnoreAnyFunction("github.com/gofiber/fiber/v2/utils.StartTimeStampUpdater.func1.1"),
	)
}

// logBuffer keeps the log, which several goroutines write.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bench is a server on a free port with fakes behind it.
type bench struct {
	t      *testing.T
	srv    *server.Server
	store  *memory
	runs   *orchestra
	files  *folder
	trials *trials
	log    *logBuffer
	base   string
	token  string
	stop   func() error
	client *http.Client
}

// drivers are those of a server.
func drivers() map[string]target.Driver {
	return map[string]target.Driver{"postgres": postgres.NewStrictDriver(nil, nil),
		"snowflake": snowflake.NewDriver()}
}

func start(t *testing.T, change ...func(*server.Options)) *bench {
	t.Helper()
	m := newMemory(t)
	b := &bench{t: t, store: m, runs: newOrchestra(m), files: &folder{parts: map[string][]byte{}}, trials: &trials{},
		log:    &logBuffer{},
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 20 * time.Second}}
	opts := server.Options{
		Addr:         "127.0.0.1:0",
		Runs:         b.runs,
		Store:        m,
		Files:        b.files,
		Plugins:      plugins{},
		Version:      "1.2.3",
		Roster:       newRoster(t, m, &machines{}),
		ControlStore: "embedded",
		DataDir:      t.TempDir(),
		Drivers:      drivers(),
		Preflight: func(_ context.Context, s engine.Scenario, trial bool) (any, error) {
			return map[string]any{"name": s.Name, "trial": trial}, nil
		},
		StatementEditor: b.trials,
		Streams:         newStreaming(t),
		UI: fstest.MapFS{
			"index.html":                 {Data: []byte("<!doctype html><title>page</title>")},
			"assets/index-B1c2D3e4.js":   {Data: []byte(strings.Repeat("console.log('loadstone');\n", 200))},
			"assets/font-aaaabbbb.woff2": {Data: []byte("font")},
			".gitkeep":                   {Data: nil},
		},
		Log:             zerolog.New(b.log),
		ShutdownTimeout: 3 * time.Second,
	}
	message := notify.Start(notify.Options{Settings: m, Log: zerolog.Nop()})
	t.Cleanup(message.Close)
	opts.Notifier, opts.Settings = message, m
	list, err := cost.Open("", t.TempDir(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	list.UseStore(m)
	opts.Prices = list
	opts.Schedules = schedule.New(schedule.Options{Store: m, Owner: t.Name(), Log: zerolog.Nop()})
	opts.Retention = retention.New(retention.Options{Store: m, Log: zerolog.Nop()})
	for _, c := range change {
		c(&opts)
	}
	srv, err := server.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	b.srv, b.base = srv, "http://"+addr
	if opts.TLS != nil {
		b.base = "https://" + addr
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx) }()
	b.stop = sync.OnceValue(func() error { cancel(); return <-served })
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		if err := b.stop(); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	if b.token, err = srv.APIToken(context.Background(), "test", time.Time{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// answer is a response that has been read.
// makePlayground makes the connection that scenarios of tests name.
func (b *bench) makePlayground() {
	b.t.Helper()
	if err := b.store.EnsureBuiltin(b.t.Context(),
		store.Connection{Name: "playground", Driver: "postgres", DSN: "postgres://h/d"}); err != nil {
		b.t.Fatal(err)
	}
}

type answer struct {
	*http.Response
	body []byte
}

func (b *bench) do(method, path string, body any, header ...string) answer {
	b.t.Helper()
	var r io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(v)
	case []byte:
		r = bytes.NewReader(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			b.t.Fatal(err)
		}
		r = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, b.base+path, r)
	if err != nil {
		b.t.Fatal(err)
	}
	if r != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Del(header[i]); header[i+1] == "" {
			continue
		}
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatalf("%s %s: reading: %v", method, path, err)
	}
	return answer{res, text}
}

func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
	return a
}

// problem checks the shape of an error answer and returns it.
func (a answer) problem(t *testing.T, status int, code engine.Code) httpx.Problem {
	t.Helper()
	a.want(t, status)
	if ct := a.Header.Get("Content-Type"); ct != httpx.ContentType {
		t.Fatalf("content type %q: %s", ct, a.body)
	}
	var p httpx.Problem
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		t.Fatalf("decoding %s: %v", a.body, err)
	}
	if p.Status != status || p.Code != code || p.Title == "" || p.Detail == "" || p.Type == "" || p.RequestID == "" ||
		p.Instance == "" {
		t.Fatalf("problem %s, want status %d and code %s", a.body, status, code)
	}
	if p.RequestID != a.Header.Get("X-Request-Id") {
		t.Fatalf("request id %q, header %q", p.RequestID, a.Header.Get("X-Request-Id"))
	}
	return p
}

func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("decoding %s: %v", a.body, err)
	}
	return v
}

const yamlText = `# kept
name: lookups
target: {connection: playground, table_name: orders}
workload: {plugin: mix, duration_seconds: 5}
tags: {ticket: PERF-1}
`

func scenario(name string) map[string]any {
	return map[string]any{"name": name, "target": map[string]any{"connection": "playground", "table_name": "orders"},
		"workload": map[string]any{"plugin": "mix", "duration_seconds": 5}}
}

func (b *bench) createRun(name string) engine.Run {
	b.t.Helper()
	return decode[engine.Run](b.t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario(name)}).want(b.t, 201))
}

// session signs in through a one-time link and returns the cookie.
func (b *bench) session() *http.Cookie {
	b.t.Helper()
	link, err := b.srv.SignInLink(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	_, token, _ := strings.Cut(link, "token=")
	res := b.do("POST", "/api/auth/signin", map[string]any{"token": token}, "Authorization", "").want(b.t, 200)
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, auth.CookieName) {
			return c
		}
	}
	b.t.Fatal("no cookie")
	return nil
}
