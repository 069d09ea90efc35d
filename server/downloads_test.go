package server_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server"
)

func (b *bench) recorded(parts int, size int) engine.Run {
	run := b.createRun("recorded")
	for i := range parts {
		name := fmt.Sprintf("executions-worker-0-%d.parquet", i)
		if err := b.store.SaveArtifact(b.t.Context(), 0,
			engine.Artifact{RunID: run.RunID, Kind: "executions", Name: name, SizeBytes: int64(size),
				SHA256: "aa"}); err != nil {
			b.t.Fatal(err)
		}
		b.files.parts[run.RunID+"/"+name] = bytes.Repeat([]byte{byte('a' + i)}, size)
	}
	return run
}

func TestDownloads(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.recorded(2, 300_000)
	path := "/api/runs/" + run.RunID + "/executions"
	a := b.do("GET", path, nil).want(t, 200)
	if d := a.Header.Get("Content-Disposition"); d != `attachment; filename=run-`+run.RunID+`-executions.zip` {
		t.Errorf("disposition %q", d)
	}
	z, err := zip.NewReader(bytes.NewReader(a.body), int64(len(a.body)))
	if err != nil || len(z.File) != 2 || z.File[0].Method != zip.Store {
		t.Fatalf("zip: %v", err)
	}
	f, err := z.File[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(data, bytes.Repeat([]byte("b"), 300_000)) {
		t.Errorf("part: %v, %d bytes", err, len(data))
	}
	a = b.do("GET", path+"?part=executions-worker-0-1.parquet", nil).want(t, 200)
	if len(a.body) != 300_000 || a.ContentLength != 300_000 ||
		a.Header.Get("Content-Type") != "application/vnd.apache.parquet" {
		t.Errorf("part: %d bytes, %v", len(a.body), a.Header)
	}
	b.do("GET", path+"?part=..%2F..%2Fetc%2Fpasswd", nil).problem(t, 404, engine.CodeNotFound)
	if a = b.do("GET", path+"?format=csv", nil).want(t, 200); string(a.body) != "a,b\n" ||
		!strings.HasPrefix(a.Header.Get("Content-Type"), "text/csv") {
		t.Errorf("csv %q", a.body)
	}
	eventually(t, func() bool { return b.files.opened() == 0 }, "a part stays open")

	// A download that fails half way must not look whole.
	b.files.mu.Lock()
	b.files.broken = true
	b.files.mu.Unlock()
	req, _ := http.NewRequest(http.MethodGet, b.base+path+"?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err == nil {
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("half a file was taken for a whole one")
	}
}

// TestAPanicEndsItsDownloadOnly lets what writes a download panic, in the goroutine
// that has no handler above it, and what reads a part.
func TestAPanicEndsItsDownloadOnly(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.recorded(1, 10)
	b.files.mu.Lock()
	b.files.panics = true
	b.files.mu.Unlock()
	for _, query := range []string{"?format=csv", "", "?part=executions-worker-0-0.parquet"} {
		req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions"+query, nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: half a file was taken for a whole one", query)
		}
	}
	b.do("GET", "/healthz", nil).want(t, 200)
	if !strings.Contains(b.log.String(), "a download panicked") {
		t.Error("the log does not have the panic")
	}
}

// TestFewExportsAtATime holds that CSV downloads are counted while they last.
func TestFewExportsAtATime(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.recorded(1, 10)
	b.files.endless = true
	path := "/api/runs/" + run.RunID + "/executions?format=csv"
	var open []io.Closer
	for range 3 {
		req, _ := http.NewRequest(http.MethodGet, b.base+path, nil)
		req.Header.Set("Authorization", "Bearer "+b.token)
		res, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, res.Body)
	}
	a := b.do("GET", path, nil)
	a.problem(t, 429, "rate_limited")
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	for _, c := range open {
		_ = c.Close()
	}
	b.files.mu.Lock()
	b.files.endless = false
	b.files.mu.Unlock()
	eventually(t, func() bool { return b.do("GET", path, nil).StatusCode == http.StatusOK },
		"the places are not given back")
}

func TestHangingUpEndsTheDownload(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.recorded(1, 10)
	b.files.endless = true
	req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	if b.files.opened() != 1 {
		t.Fatal("nothing is being written")
	}
	_ = res.Body.Close()
	eventually(t, func() bool { return b.files.opened() == 0 }, "the exporter still runs")
}

func TestShutdownCutsAnEndlessDownload(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.ShutdownTimeout = 600 * time.Millisecond })
	run := b.recorded(1, 10)
	b.files.endless = true
	req, _ := http.NewRequest(http.MethodGet, b.base+"/api/runs/"+run.RunID+"/executions?format=csv", nil)
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	go func() { _, _ = io.Copy(io.Discard, res.Body) }()
	if err := b.stop(); err != nil {
		t.Errorf("serving: %v", err)
	}
	eventually(t, func() bool { return b.files.opened() == 0 }, "the exporter still runs")
}
