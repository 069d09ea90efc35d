package nodes

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// remote is a node of another process, as far as its parts are concerned: HTTP over loopback.
func remote(tb testing.TB, parts protocol.Parts) *handle {
	tb.Helper()
	l, err := rpc.Listen(tb.Context(), rpc.ListenOptions{Address: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		tb.Fatal(err)
	}
	l.Serve(parts)
	d, err := rpc.NewDialer(rpc.DialOptions{Address: l.Addr().String(), Process: "server"})
	if err != nil {
		tb.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if end, err := l.Accept(tb.Context()); err == nil {
			tb.Cleanup(func() { _ = end.Close() })
		}
	})
	end, err := d.Dial(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	accepting.Wait()
	tb.Cleanup(func() { _ = end.Close(); _ = d.Close(); _ = l.Close() })
	f := New(Options{Log: zerolog.Nop()})
	f.byID["a"] = &node{fleet: f, end: end}
	return f.handle("a")
}

// TestAPartArrivesAsItWasAnnouncedOrNotAtAll: over HTTP into the folder of results, from a disk that
// flips a bit or loses some, and from a node that stops in the middle.
func TestAPartArrivesAsItWasAnnouncedOrNotAtAll(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	p := protocoltest.Announcement(content)
	path := filepath.Join(t.TempDir(), "part")
	n := remote(t, func(id string) (*os.File, error) {
		if id != p.WorkID {
			return nil, os.ErrNotExist
		}
		return os.Open(path)
	})
	folder, err := objects.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	flipped[len(content)/3] ^= 16
	part := Part{WorkReady: p, Node: n}
	for name, bad := range map[string][]byte{"a flipped bit": flipped, "a byte too few": content[1:],
		"half":    content[:1<<15],
		"nothing": {}, "a byte too many": append(bytes.Clone(content), 'x')} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := folder.Put(t.Context(), p.Artifact, part); !errors.Is(err, objects.ErrChecksum) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := folder.Open(t.Context(), p.Artifact.RunID, p.Artifact.Name); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("%s: it is stored: %v", name, err)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := folder.Put(t.Context(), p.Artifact, part); err != nil {
		t.Fatal(err)
	}
	other := part
	other.Artifact.Name = "executions-other.parquet"
	other.WorkID = protocol.PartWorkID(other.Artifact)
	other.ArtifactURL = protocol.PartsPath + other.WorkID
	if err := folder.Put(t.Context(), other.Artifact, other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part that the node does not hold: %v", err)
	}
}

// BenchmarkTransfer fetches a part from a node over loopback, checks it, and makes it durable.
func BenchmarkTransfer(b *testing.B) {
	for _, megabytes := range []int{64, 512} {
		b.Run(fmt.Sprintf("%dMB", megabytes), func(b *testing.B) {
			content := make([]byte, megabytes<<20)
			_, _ = rand.Read(content) // never fails
			p := protocoltest.Announcement(content)
			path := filepath.Join(b.TempDir(), "part")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				b.Fatal(err)
			}
			n := remote(b, func(string) (*os.File, error) { return os.Open(path) })
			folder, err := objects.OpenFolder(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(p.Artifact.SizeBytes)
			for b.Loop() {
				if err := folder.Put(b.Context(), p.Artifact, Part{WorkReady: p, Node: n}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := folder.Delete(b.Context(), p.Artifact.RunID); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
