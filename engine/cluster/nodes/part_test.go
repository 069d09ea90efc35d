package nodes

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// TestWhatANodeCannotHaveMadeIsNotHeard: an announcement that names a file of the server, another
// host or a path that climbs reaches nobody, and the node's other messages do.
func TestWhatANodeCannotHaveMadeIsNotHeard(t *testing.T) {
	withFleet(t, 1, func(t *testing.T, f *fleetTest) {
		good := protocoltest.Announcement([]byte("x"))
		lies := protocoltest.ForgedParts(good, "/etc/hostname")
		m := hello("a", 0)
		for _, p := range lies {
			m.Parts = append(m.Parts, p)
		}
		var e *fakeNode
		f.wg.Go(func() {
			e = f.node(0)
			_ = e.Send(f.ctx, m)
		})
		f.open()
		for _, p := range lies {
			e.send(t, p)
		}
		e.send(t, good)
		if len(f.parts) != 1 || f.parts[0].WorkID != good.WorkID {
			t.Errorf("%d parts were heard of %d lies and a good one", len(f.parts), 2*len(lies))
		}
	})
}

// TestAPartIsReadFromTheNodeOfItsStream: also after another stream has taken the place of the one
// that announced it, and not while there is none.
func TestAPartIsReadFromTheNodeOfItsStream(t *testing.T) {
	withFleet(t, 2, func(t *testing.T, f *fleetTest) {
		path := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		part := protocoltest.Announcement([]byte("content"))
		f.links[0].Serve(func(string) (*os.File, error) { return os.Open(path) })
		f.links[1].Serve(func(id string) (*os.File, error) {
			t.Errorf("another node was asked for %s", id)
			return nil, os.ErrNotExist
		})
		var e *fakeNode
		f.wg.Go(func() { e = f.node(0); m := hello("a", 0); m.Parts = []protocol.WorkReady{part}; _ = e.Send(f.ctx, m) })
		f.wg.Go(func() { _ = f.node(1).Send(f.ctx, hello("b", 0)) })
		f.open()
		read := func() (string, error) {
			r, err := f.parts[0].Open(t.Context())
			if err != nil {
				return "", err
			}
			defer r.Close()
			b, err := io.ReadAll(r)
			return string(b), err
		}
		if got, err := read(); got != "content" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		_ = e.Close()
		synctest.Wait()
		if _, err := read(); !errors.Is(err, protocol.ErrClosed) {
			t.Errorf("without a stream: %v", err)
		}
		again := f.node(0)
		again.send(t, hello("a", 0))
		if got, err := read(); got != "content" || err != nil {
			t.Errorf("over the next stream: %q, %v", got, err)
		}
	})
}
