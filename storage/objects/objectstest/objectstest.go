// Package objectstest is the conformance suite of objects.Store: every store of
// files passes it, whatever keeps them.
package objectstest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// Sizes are of files that a store may treat differently, in bytes: the suite stores
// one of each. The last is also read at offsets.
var Sizes = []int{1, 4 << 10, 1<<20 + 1, 11<<20 + 12345}

// Content is n bytes that are the same for the same seed.
func Content(n int, seed uint64) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = rng.Read(b) // never fails
	return b
}

// File writes content into a file of its own, and says what it is.
func File(t testing.TB, runID, name string, content []byte) (engine.Artifact, string) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "spool")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return engine.Artifact{RunID: runID, Name: name, SizeBytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])},
		path
}

// Put stores content under a name.
func Put(t testing.TB, s objects.Store, runID, name string, content []byte) engine.Artifact {
	t.Helper()
	a, path := File(t, runID, name, content)
	if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
		t.Fatalf("storing %d bytes: %v", len(content), err)
	}
	return a
}

// Read is the whole of a stored file.
func Read(t testing.TB, s objects.Store, runID, name string) []byte {
	t.Helper()
	f, err := s.Open(t.Context(), runID, name)
	if err != nil {
		t.Fatalf("opening %s: %v", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return b
}

// Run holds stores to the contract; each case gets an empty one.
func Run(t *testing.T, open func(t *testing.T) objects.Store) {
	for name, test := range map[string]func(*testing.T, objects.Store){
		"WhatIsStoredIsRead":                    testStored,
		"ReadingAtOffsets":                      testReadAt,
		"RepeatingIsHarmless":                   testRepeatedPut,
		"WhatIsNotTheArtifactIsRefused":         testChecksumMismatch,
		"ASourceThatBreaksStoresNothing":        testBrokenSources,
		"AnotherContentIsAConflict":             testConflict,
		"ManyAtATime":                           testManyParts,
		"RunsAreApart":                          testRunIsolation,
		"DeleteRemovesARun":                     testDelete,
		"RemoveTakesOneFile":                    testRemove,
		"NamesCannotClimb":                      testPathTraversal,
		"AnEndedContextEndsIt":                  testCancelledContext,
		"WhatIsAbsentIsNotFound":                testAbsent,
		"TheOneWhoComesSecondOverwritesNothing": testConcurrentPuts,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testStored(t *testing.T, s objects.Store) {
	for i, size := range Sizes {
		content := Content(size, uint64(i))
		a, path := File(t, "run", "executions-"+string(rune('a'+i))+".parquet", content)
		if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if left, err := os.ReadFile(path); err != nil || !bytes.Equal(left, content) {
			t.Errorf("%d bytes: the source has %d of them: %v", size, len(left), err)
		}
		if got := Read(t, s, "run", a.Name); !bytes.Equal(got, content) {
			t.Errorf("%d bytes: %d others are read", size, len(got))
		}
	}
	names, err := s.Names(t.Context(), "run")
	if err != nil || len(names) != len(Sizes) || !slices.IsSorted(names) {
		t.Errorf("names %v: %v", names, err)
	}
	position, label, err := s.ID()
	if second, _, err := s.ID(); err != nil || position == "" || label == "" || second != position {
		t.Errorf("its place is %q, %q, and then %q: %v", position, label, second, err)
	}
	if err != nil {
		t.Error(err)
	}
	if s.Location("run") == "" || !strings.Contains(s.Location("run"), "run") {
		t.Errorf("it is nowhere: %q", s.Location("run"))
	}
}

func testReadAt(t *testing.T, s objects.Store) {
	content := Content(Sizes[len(Sizes)-1], 5)
	Put(t, s, "run", "a.parquet", content)
	f, err := s.Open(t.Context(), "run", "a.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Size() != int64(len(content)) {
		t.Fatalf("size %d of %d", f.Size(), len(content))
	}
	read := func(at, n int) {
		b := make([]byte, n)
		got, err := f.ReadAt(b, int64(at))
		want := content[min(at, len(content)):min(at+n, len(content))]
		if got != len(want) || !bytes.Equal(b[:got], want) || (err != nil && !errors.Is(err, io.EOF)) ||
			(got < n) != (err != nil) {
			t.Fatalf("%d bytes at %d: %d, %v", n, at, got, err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		read(rng.IntN(len(content)), 1+rng.IntN(300<<10))
	}
	read(0, 1)
	read(len(content)-8, 8)
	read(len(content)-8, 9)
	read(len(content), 4)
	read(len(content)+5, 4)
	// Readers of one file do not disturb each other.
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			b := make([]byte, 1<<20)
			for at := i << 20; at+len(b) < len(content); at += 4 << 20 {
				if _, err := f.ReadAt(b, int64(at)); err != nil || !bytes.Equal(b, content[at:at+len(b)]) {
					t.Errorf("at %d beside others: %v", at, err)
				}
			}
		})
	}
	group.Wait()
}

func testRepeatedPut(t *testing.T, s objects.Store) {
	for _, size := range Sizes {
		content := Content(size, 1)
		a, path := File(t, "run", "a"+string(rune('a'+size%26))+".parquet", content)
		if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatalf("when the source is gone: %v", err)
		}
		second, path := File(t, "run", a.Name, content)
		if err := s.Put(t.Context(), second, record.LocalFile(path)); err != nil {
			t.Fatalf("the same content: %v", err)
		}
		if !bytes.Equal(Read(t, s, "run", a.Name), content) {
			t.Error("another content after a repetition")
		}
	}
}

func testChecksumMismatch(t *testing.T, s objects.Store) {
	for _, size := range Sizes {
		a, path := File(t, "run", "a.parquet", Content(size, 2))
		wrong, longer, shorter := a, a, a
		wrong.SHA256 = strings.Repeat("0", 64)
		longer.SizeBytes++
		shorter.SizeBytes--
		for _, a := range []engine.Artifact{wrong, longer, shorter} {
			if err := s.Put(t.Context(), a, record.LocalFile(path)); !errors.Is(err, objects.ErrChecksum) {
				t.Errorf("%d bytes as another: %v", size, err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("a refused file is gone: %v", err)
			}
		}
		if names, err := s.Names(t.Context(), "run"); err != nil || len(names) != 0 {
			t.Fatalf("a refused file is stored: %v, %v", names, err)
		}
		if _, err := s.Open(t.Context(), "run", "a.parquet"); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("a refused file is stored: %v", err)
		}
	}
}

func testConflict(t *testing.T, s objects.Store) {
	for i, size := range Sizes {
		name := "a" + string(rune('a'+i)) + ".parquet"
		first := Content(size, 3)
		Put(t, s, "run", name, first)
		for _, other := range [][]byte{Content(size, 4), Content(size+1, 3)} {
			a, path := File(t, "run", name, other)
			if err := s.Put(t.Context(), a, record.LocalFile(path)); !errors.Is(err, store.ErrConflict) {
				t.Errorf("%d bytes over %d: %v", len(other), size, err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file of a conflict is gone: %v", err)
			}
		}
		if !bytes.Equal(Read(t, s, "run", name), first) {
			t.Error("what was stored first is another now")
		}
	}
}

// Stream is a source that is no file: what a node of another machine gives.
type Stream struct {
	Content []byte
	// Broken follows the content, in place of its end.
	Broken error
	// Endless repeats the content without end.
	Endless bool
	// Opened and Closed count readers, Read bytes that were taken.
	Opened, Closed int
	Read           int64
}

// Open implements record.Source.
func (s *Stream) Open(context.Context) (io.ReadCloser, error) {
	s.Opened++
	return &streamReader{s: s, rest: s.Content}, nil
}

type streamReader struct {
	s    *Stream
	rest []byte
}

func (r *streamReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.s.Endless {
		r.rest = r.s.Content
	}
	if len(r.rest) == 0 {
		if r.s.Broken != nil {
			return 0, r.s.Broken
		}
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 10_001)], r.rest) // as a network gives it
	r.rest = r.rest[n:]
	r.s.Read += int64(n)
	return n, nil
}

func (r *streamReader) Close() error {
	r.s.Closed++
	return nil
}

// testBrokenSources stores from streams, the first of which are not what they should be.
func testBrokenSources(t *testing.T, s objects.Store) {
	cut := errors.New("the connection was cut")
	for i, size := range Sizes {
		content := Content(size, 10)
		a, _ := File(t, "run", "a"+string(rune('a'+i))+".parquet", content)
		flipped := bytes.Clone(content)
		flipped[size/2] ^= 4
		for name, c := range map[string]struct {
			source *Stream
			want   error
		}{
			"a flipped bit":          {&Stream{Content: flipped}, objects.ErrChecksum},
			"a byte too few":         {&Stream{Content: content[:size-1]}, objects.ErrChecksum},
			"a byte too many":        {&Stream{Content: append(bytes.Clone(content), 0)}, objects.ErrChecksum},
			"nothing":                {&Stream{}, objects.ErrChecksum},
			"no end":                 {&Stream{Content: content, Endless: true}, objects.ErrChecksum},
			"cut in the middle":      {&Stream{Content: content[:size/2], Broken: cut}, cut},
			"cut at the last byte":   {&Stream{Content: content[:size-1], Broken: cut}, cut},
			"cut in place of an end": {&Stream{Content: content, Broken: cut}, cut},
		} {
			if err := s.Put(t.Context(), a, c.source); !errors.Is(err, c.want) {
				t.Errorf("%d bytes, %s: %v", size, name, err)
			}
			if c.source.Opened != 1 || c.source.Closed != 1 || c.source.Read > int64(size)+10_001 {
				t.Errorf("%d bytes, %s: opened %d times and closed %d times, %d bytes were read", size, name, c.source.Opened,
					c.source.Closed, c.source.Read)
			}
			if _, err := s.Open(t.Context(), "run", a.Name); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("%d bytes, %s: it is stored: %v", size, name, err)
			}
		}
		whole := &Stream{Content: content}
		if err := s.Put(t.Context(), a, whole); err != nil || whole.Opened != 1 || whole.Closed != 1 {
			t.Fatalf("%d bytes after all that: %v, opened %d times, closed %d times", size, err, whole.Opened, whole.Closed)
		}
		if got := Read(t, s, "run", a.Name); !bytes.Equal(got, content) {
			t.Errorf("%d bytes: %d others are read", size, len(got))
		}
	}
	endless := engine.Artifact{RunID: "run", Name: "huge.parquet", SizeBytes: 1<<63 - 1, SHA256: strings.Repeat("0", 64)}
	if err := s.Put(t.Context(), endless, &Stream{Content: []byte("x"), Broken: cut}); !errors.Is(err, cut) {
		t.Errorf("a size that cannot be: %v", err)
	}
}

// testConcurrentPuts stores different contents under one name at once, and one content many times.
func testConcurrentPuts(t *testing.T, s objects.Store) {
	for _, size := range []int{100, Sizes[len(Sizes)-1]} {
		name := "race" + string(rune('a'+size%26)) + ".parquet"
		contents := [][]byte{Content(size, 6), Content(size, 6), Content(size, 7)}
		failed := make([]error, len(contents))
		var group sync.WaitGroup
		for i, content := range contents {
			a, path := File(t, "run", name, content)
			group.Go(func() { failed[i] = s.Put(t.Context(), a, record.LocalFile(path)) })
		}
		group.Wait()
		got := Read(t, s, "run", name)
		for i, content := range contents {
			won := bytes.Equal(got, content)
			if won != (failed[i] == nil) || !won && !errors.Is(failed[i], store.ErrConflict) {
				t.Errorf("%d bytes: content %d is kept: %v, and its writer was told: %v", size, i, won, failed[i])
			}
		}
	}
}

func testManyParts(t *testing.T, s objects.Store) {
	const n = 16
	var group sync.WaitGroup
	for i := range n {
		name := "part-" + string(rune('a'+i)) + ".parquet"
		a, path := File(t, "run", name, Content(1000+i, uint64(i)))
		group.Go(func() {
			if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	group.Wait()
	names, err := s.Names(t.Context(), "run")
	if err != nil || len(names) != n {
		t.Fatalf("%d names: %v", len(names), err)
	}
	for i, name := range names {
		if !bytes.Equal(Read(t, s, "run", name), Content(1000+i, uint64(i))) {
			t.Errorf("%s is another's", name)
		}
	}
}

func testRunIsolation(t *testing.T, s objects.Store) {
	// One id begins with the other.
	Put(t, s, "run", "a.parquet", []byte("run's"))
	Put(t, s, "run-2", "a.parquet", []byte("run-2's"))
	Put(t, s, "run-2", "b.parquet", []byte("run-2's"))
	if names, err := s.Names(t.Context(), "run"); err != nil || len(names) != 1 {
		t.Fatalf("names %v: %v", names, err)
	}
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if got := string(Read(t, s, "run-2", "a.parquet")); got != "run-2's" {
		t.Fatalf("%q", got)
	}
	if names, err := s.Names(t.Context(), "run-2"); err != nil || len(names) != 2 {
		t.Fatalf("names %v: %v", names, err)
	}
}

func testDelete(t *testing.T, s objects.Store) {
	Put(t, s, "run", "a.parquet", Content(Sizes[len(Sizes)-1], 8))
	Put(t, s, "run", "b.parquet", []byte("b"))
	_ = Read(t, s, "run", "a.parquet")
	for range 2 {
		if err := s.Delete(t.Context(), "run"); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := s.Names(t.Context(), "run"); err != nil || len(names) != 0 {
		t.Fatalf("names %v: %v", names, err)
	}
	if _, err := s.Open(t.Context(), "run", "a.parquet"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a deleted file: %v", err)
	}
	// The name is free again, also for another content.
	Put(t, s, "run", "a.parquet", []byte("anew"))
	if got := string(Read(t, s, "run", "a.parquet")); got != "anew" {
		t.Fatalf("%q", got)
	}
}

func testRemove(t *testing.T, s objects.Store) {
	Put(t, s, "run", "a.parquet", Content(Sizes[len(Sizes)-1], 8))
	Put(t, s, "run", "a.parquet.b.parquet", []byte("b"))
	Put(t, s, "other", "a.parquet", []byte("other"))
	_ = Read(t, s, "run", "a.parquet")
	for _, name := range []string{"a.parquet", "a.parquet", "never.parquet"} {
		if err := s.Remove(t.Context(), "run", name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Open(t.Context(), "run", "a.parquet"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a removed file: %v", err)
	}
	if names, err := s.Names(t.Context(), "run"); err != nil || len(names) != 1 {
		t.Fatalf("names %v: %v", names, err)
	}
	left, other := Read(t, s, "run", "a.parquet.b.parquet"), Read(t, s, "other", "a.parquet")
	if string(left) != "b" || string(other) != "other" {
		t.Fatalf("%q, %q", left, other)
	}
	if err := s.Remove(t.Context(), "no-such-run", "a.parquet"); err != nil {
		t.Fatalf("a run that has nothing: %v", err)
	}
	// The name is free again, also for another content.
	Put(t, s, "run", "a.parquet", []byte("anew"))
	if got := string(Read(t, s, "run", "a.parquet")); got != "anew" {
		t.Fatalf("%q", got)
	}
}

func testPathTraversal(t *testing.T, s objects.Store) {
	Put(t, s, "run", "a.parquet", []byte("a"))
	for _, bad := range [][2]string{
		{"run", "../secret.parquet"}, {"run", "/etc/passwd"}, {"run", "a/b.parquet"}, {"run", ".hidden.parquet"},
		{"run", "x.parquet.tmp"}, {"run", ""}, {"run", "x"}, {"..", "x.parquet"}, {"", "x.parquet"},
		{"a/../run", "x.parquet"}, {"run", "x\x00.parquet"}, {"run", `..\x.parquet`}, {"run", "%2e%2e%2fx.parquet"},
	} {
		if _, err := s.Open(t.Context(), bad[0], bad[1]); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("open %q: %v", bad, err)
		}
		a, path := File(t, bad[0], bad[1], []byte("x"))
		if err := s.Put(t.Context(), a, record.LocalFile(path)); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("put %q: %v", bad, err)
		}
	}
	for _, run := range []string{"", ".", "..", "../x", "a/b", "run/a.parquet"} {
		if err := s.Delete(t.Context(), run); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("delete %q: %v", run, err)
		}
		if err := s.Remove(t.Context(), run, "a.parquet"); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("run %q: removing: %v", run, err)
		}
		if _, err := s.Names(t.Context(), run); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("names %q: %v", run, err)
		}
	}
	if got := string(Read(t, s, "run", "a.parquet")); got != "a" {
		t.Fatalf("%q", got)
	}
}

func testCancelledContext(t *testing.T, s objects.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, path := File(t, "run", "a.parquet", Content(Sizes[len(Sizes)-1], 9))
	if err := s.Put(ctx, a, record.LocalFile(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
	if names, err := s.Names(t.Context(), "run"); err != nil || len(names) != 0 {
		t.Errorf("names %v: %v", names, err)
	}
}

func testAbsent(t *testing.T, s objects.Store) {
	if names, err := s.Names(t.Context(), "never"); err != nil || len(names) != 0 {
		t.Errorf("names %v: %v", names, err)
	}
	if _, err := s.Open(t.Context(), "never", "a.parquet"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open: %v", err)
	}
	a := engine.Artifact{RunID: "run", Name: "a.parquet", SizeBytes: 1, SHA256: strings.Repeat("0", 64)}
	missing := record.LocalFile(filepath.Join(t.TempDir(), "absent"))
	if err := s.Put(t.Context(), a, missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
