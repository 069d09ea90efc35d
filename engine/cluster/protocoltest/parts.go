package protocoltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Announcement is the announcement of a part with that content.
func Announcement(content []byte) protocol.WorkReady {
	sum := sha256.Sum256(content)
	a := engine.Artifact{RunID: "r", WorkerID: "worker-0", Name: "executions-worker-0-00001.parquet",
		SizeBytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	id := protocol.PartWorkID(a)
	return protocol.WorkReady{WorkID: id, ArtifactURL: protocol.PartsPath + id, Artifact: a}
}

// ForgedParts are announcements that no server may follow, made of a good one by name. path
// is a file of this machine with the same content.
func ForgedParts(good protocol.WorkReady, path string) map[string]protocol.WorkReady {
	lies := map[string]protocol.WorkReady{}
	for name, change := range map[string]func(p *protocol.WorkReady){
		"another host":            func(p *protocol.WorkReady) { p.ArtifactURL = "http://example.com" + p.ArtifactURL },
		"another host, no scheme": func(p *protocol.WorkReady) { p.ArtifactURL = "//example.com" + p.ArtifactURL },
		"a user and a host":       func(p *protocol.WorkReady) { p.ArtifactURL = "@example.com" + p.ArtifactURL },
		"a file":                  func(p *protocol.WorkReady) { p.ArtifactURL = "file://" + path },
		"a path":                  func(p *protocol.WorkReady) { p.ArtifactURL = path },
		"another path":            func(p *protocol.WorkReady) { p.ArtifactURL = "/livez" },
		"nothing":                 func(p *protocol.WorkReady) { p.ArtifactURL = "" },
		"a query":                 func(p *protocol.WorkReady) { p.ArtifactURL += "?x" },
		"out of the folder":       func(p *protocol.WorkReady) { p.ArtifactURL = protocol.PartsPath + "../livez" },
		"encoded dots":            func(p *protocol.WorkReady) { p.ArtifactURL = protocol.PartsPath + "r/w/%2e%2e/x" },
		"another part":            func(p *protocol.WorkReady) { p.WorkID += "x" },
		"a run that climbs":       func(p *protocol.WorkReady) { p.Artifact.RunID = ".." },
		"a run with a slash":      func(p *protocol.WorkReady) { p.Artifact.RunID = "a/b" },
		"a worker that climbs":    func(p *protocol.WorkReady) { p.Artifact.WorkerID = "../.." },
		"a name that climbs":      func(p *protocol.WorkReady) { p.Artifact.Name = "../x.parquet" },
		"an absolute name":        func(p *protocol.WorkReady) { p.Artifact.Name = "/etc/x.parquet" },
		"a hidden name":           func(p *protocol.WorkReady) { p.Artifact.Name = ".x.parquet" },
		"a name of no part":       func(p *protocol.WorkReady) { p.Artifact.Name = "counts.json" },
		"a name with a zero":      func(p *protocol.WorkReady) { p.Artifact.Name = "x\x00.parquet" },
		"a name with a backslash": func(p *protocol.WorkReady) { p.Artifact.Name = `..\x.parquet` },
		"a long name":             func(p *protocol.WorkReady) { p.Artifact.Name = strings.Repeat("x", 1<<20) + ".parquet" },
		"a size below zero":       func(p *protocol.WorkReady) { p.Artifact.SizeBytes = -1 },
		"a size beyond measure":   func(p *protocol.WorkReady) { p.Artifact.SizeBytes = protocol.MaxPart + 1 },
		"rows below zero":         func(p *protocol.WorkReady) { p.Artifact.RowCount = -1 },
		"no sum":                  func(p *protocol.WorkReady) { p.Artifact.SHA256 = "" },
		"a sum that climbs":       func(p *protocol.WorkReady) { p.Artifact.SHA256 = strings.Repeat("../", 21) + "x" },
	} {
		p := good
		change(&p)
		lies[name] = p
		// The same with a work id and a path that agree with it.
		p.WorkID = protocol.PartWorkID(p.Artifact)
		if p.Artifact != good.Artifact {
			p.ArtifactURL = protocol.PartsPath + p.WorkID
			lies[name+", consistently"] = p
		}
	}
	return lies
}

func parts(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	content := bytes.Repeat([]byte("parquet "), 100_000)
	p := Announcement(content)
	path := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Listener.Serve(func(id string) (*os.File, error) {
		if id != p.WorkID {
			t.Errorf("the node was asked for %q", id)
		}
		return os.Open(path)
	})
	server, _ := session(t, l)
	for range 2 { // it stays the node's
		r, err := server.OpenPart(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d of %d bytes: %v", len(got), len(content), err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r, err := server.OpenPart(t.Context(), p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part that the node has lost: %v, %v", r, err)
	}
}

func otherParts(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Listener.Serve(func(id string) (*os.File, error) {
		t.Errorf("the node was asked for %q", id)
		return os.Open(path)
	})
	server, _ := session(t, l)
	for name, p := range ForgedParts(Announcement([]byte("content")), path) {
		if r, err := server.OpenPart(t.Context(), p); !errors.Is(err, protocol.ErrAnnounced) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}
