package s3store

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/objects"
	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const megabyte = 1 << 20

// options are those of tests: short pauses, parts of the least size that real servers take.
func options(t testing.TB) Options {
	return Options{CacheDir: filepath.Join(t.TempDir(), "cache"), CacheBytes: 64 * megabyte, Log: zerolog.Nop(),
		Attempts: 4, RetryDelay: 20 * time.Millisecond, PartBytes: 5 * megabyte}
}

// at opens a store with the server's keys.
func at(t testing.TB, server s3test.Server, prefix string, opts Options) *Store {
	t.Helper()
	server.Environment(t)
	address, err := ParseAddress(server.Address(prefix))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), address, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAStandInForS3Conforms(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store {
		return at(t, s3test.NewStandIn(t, "results").Server, "some/where", options(t))
	})
}

func TestARealS3ServerConforms(t *testing.T) {
	server := s3test.Real(t, "results")
	n := 0
	objectstest.Run(t, func(t *testing.T) objects.Store {
		n++
		return at(t, server, "empty-"+string(rune('a'+n)), options(t))
	})
}

// Without a cache, with every tenth request lost, and in the root of the bucket.
func TestAnUnreliableS3Conforms(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objects.Store {
		proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
		proxy.Set(s3test.OneIn(10, s3test.DropResponse))
		opts := options(t)
		opts.CacheBytes = 0
		return at(t, proxy.Server, "", opts)
	})
}

// each runs a test on the stand-in and, where it is built, on the real server.
func each(t *testing.T, test func(t *testing.T, server s3test.Server)) {
	t.Run("stand-in", func(t *testing.T) { test(t, s3test.NewStandIn(t, "results").Server) })
	t.Run("real", func(t *testing.T) { test(t, s3test.Real(t, "results")) })
}

func TestARequestThatIsAppliedTwiceStoresOnce(t *testing.T) {
	for name, fault := range map[string]s3test.Fault{"twice": s3test.ApplyTwice, "lost": s3test.OneIn(2, s3test.DropResponse)} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, server s3test.Server) {
				proxy := s3test.NewProxy(t, server)
				s := at(t, proxy.Server, "", options(t))
				proxy.Set(fault)
				for i, size := range []int{1000, 7 * megabyte} {
					content := objectstest.Content(size, uint64(i))
					objectstest.Put(t, s, "run", "part.parquet", content)
					if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
						t.Error("another content")
					}
					if err := s.Delete(t.Context(), "run"); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}

// TestAnUploadThatStoppedGoesOn: the process was killed between two parts, and another takes the file.
func TestAnUploadThatStoppedGoesOn(t *testing.T) {
	each(t, func(t *testing.T, server s3test.Server) {
		proxy := s3test.NewProxy(t, server)
		first := at(t, proxy.Server, "some", options(t))
		content := objectstest.Content(17*megabyte, 1) // four parts
		a, path := objectstest.File(t, "run", "part.parquet", content)
		proxy.Set(s3test.After(2, isPart, s3test.Overloaded))
		if err := first.Put(t.Context(), a, record.LocalFile(path)); !engine.HasCode(err, engine.CodeUnavailable) {
			t.Fatalf("an upload that cannot go on: %v", err)
		}
		if names, err := first.Names(t.Context(), "run"); err != nil || len(names) != 0 {
			t.Fatalf("half a file is there: %v, %v", names, err)
		}
		second := at(t, proxy.Server, "some", options(t))
		sent := 0
		proxy.Set(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if isPart(r) {
				sent++
			}
			return false
		})
		if err := second.Put(t.Context(), a, record.LocalFile(path)); err != nil {
			t.Fatal(err)
		}
		if sent < 1 || sent > 3 {
			t.Errorf("%d parts were sent by the second process; two of four were there", sent)
		}
		if !bytes.Equal(objectstest.Read(t, second, "run", "part.parquet"), content) {
			t.Error("another content")
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the source is gone: %v", err)
		}
	})
}

// TestAnUploadOfSomethingElseIsNotGoneOnWith: what another file of that name left is no part of this one.
func TestAnUploadOfSomethingElseIsNotGoneOnWith(t *testing.T) {
	each(t, func(t *testing.T, server s3test.Server) {
		proxy := s3test.NewProxy(t, server)
		s := at(t, proxy.Server, "", options(t))
		content := objectstest.Content(11*megabyte, 1)
		other := bytes.Clone(content)
		other[10*megabyte+5] ^= 1 // in the last part
		completes := func(r *http.Request) bool { return r.Method == http.MethodPost && !r.URL.Query().Has("uploads") }
		last := func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "3" }
		for stopped, lefts := range map[*func(*http.Request) bool][][]byte{
			&completes: {objectstest.Content(11*megabyte, 2), other},
			&last:      {other}, // what is there of it is the same
		} {
			for _, left := range lefts {
				a, path := objectstest.File(t, "run", "part.parquet", left)
				proxy.Set(s3test.After(0, *stopped, s3test.Overloaded))
				if err := s.Put(t.Context(), a, record.LocalFile(path)); err == nil {
					t.Fatal("it was completed")
				}
			}
			proxy.Set(nil)
			objectstest.Put(t, s, "run", "part.parquet", content)
			if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
				t.Error("another content")
			}
			if err := s.Delete(t.Context(), "run"); err != nil {
				t.Fatal(err)
			}
			if left, err := s.uploads(t.Context(), ""); err != nil || len(left) != 0 {
				t.Errorf("%d uploads of a deleted run are left: %v", len(left), err)
			}
		}
	})
}

func TestAbandonedUploadsAreRemoved(t *testing.T) {
	standIn := s3test.NewStandIn(t, "results")
	proxy := s3test.NewProxy(t, standIn.Server)
	s := at(t, proxy.Server, "some", options(t))
	proxy.Set(s3test.After(1, isPart, s3test.Overloaded))
	a, path := objectstest.File(t, "run", "part.parquet", objectstest.Content(12*megabyte, 1))
	if err := s.Put(t.Context(), a, record.LocalFile(path)); err == nil {
		t.Fatal("it was stored")
	}
	proxy.Set(nil)
	_ = at(t, proxy.Server, "some", options(t))
	if standIn.Uploads() != 1 {
		t.Fatalf("%d uploads after an hour", standIn.Uploads())
	}
	standIn.Age(25 * time.Hour)
	_ = at(t, proxy.Server, "elsewhere", options(t))
	if standIn.Uploads() != 1 {
		t.Fatal("the upload of another prefix was removed")
	}
	_ = at(t, proxy.Server, "some", options(t))
	if standIn.Uploads() != 0 {
		t.Fatal("an upload of yesterday is still there")
	}
}

func TestAnS3ThatDoesNotAnswerIsToldInWords(t *testing.T) {
	for name, c := range map[string]struct {
		fault s3test.Fault
		says  string
	}{
		"overloaded": {s3test.Overloaded, "overloaded"},
		"silent":     {s3test.HangRequest, "too slow"},
		"broken":     {s3test.DropResponse, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
			opts := options(t)
			silent := name == "silent"
			if silent { // each attempt of which takes that long
				opts.Idle, opts.Attempts = time.Second, 2
			}
			s := at(t, proxy.Server, "", opts)
			objectstest.Put(t, s, "run", "there.parquet", []byte("there"))
			f, err := s.Open(t.Context(), "run", "there.parquet")
			if err != nil {
				t.Fatal(err)
			}
			proxy.Set(c.fault)
			before := proxy.Requests.Load()
			a, path := objectstest.File(t, "run", "part.parquet", []byte("content"))
			err = s.Put(t.Context(), a, record.LocalFile(path))
			e := engine.AsError(err)
			if e.Code != engine.CodeUnavailable || !strings.Contains(e.Message, c.says) || e.Hint == "" ||
				!strings.Contains(e.Message, "s3://results") || !strings.Contains(e.Message, "part.parquet") {
				t.Errorf("%s: %+v", name, e)
			}
			// One more where the connection was an old one.
			if n := proxy.Requests.Load() - before; n < int64(opts.Attempts) || n > int64(opts.Attempts)+1 {
				t.Errorf("%d requests, and %d attempts are allowed", n, opts.Attempts)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file is gone: %v", err)
			}
			// The next one does not wait as long.
			before = proxy.Requests.Load()
			if err := s.Put(t.Context(), a, record.LocalFile(path)); err == nil || proxy.Requests.Load()-before > 2 {
				t.Errorf("%d requests while nobody answers: %v", proxy.Requests.Load()-before, err)
			}
			if silent {
				return
			}
			for doing, err := range map[string]error{"names": second(s.Names(t.Context(), "run")),
				"delete": s.Delete(t.Context(), "run"), "open": second(s.Open(t.Context(), "run", "x.parquet")),
				"read": second(f.ReadAt(make([]byte, 2), 0))} {
				if !engine.HasCode(err, engine.CodeUnavailable) || errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s: %v", doing, err)
				}
			}
			// It is back: everything goes on.
			proxy.Set(nil)
			if err := s.Put(t.Context(), a, record.LocalFile(path)); err != nil {
				t.Error(err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// TestAWriterThatIsAtItIsWaitedFor: the name is refused before another's object is there, and then comes none.
func TestAWriterThatIsAtItIsWaitedFor(t *testing.T) {
	proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
	opts := options(t)
	s := at(t, proxy.Server, "", opts)
	for _, size := range []int{100, 6 * megabyte} {
		conditional := func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" }
		proxy.Set(s3test.First(int64(opts.Attempts)-1, conditional, s3test.ConcurrentWriter))
		content := objectstest.Content(size, 1)
		objectstest.Put(t, s, "run", "part.parquet", content)
		if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
			t.Error("another content")
		}
		if err := s.Delete(t.Context(), "run"); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Set(s3test.ConcurrentWriter)
	a, path := objectstest.File(t, "run", "part.parquet", []byte("content"))
	if err := s.Put(t.Context(), a, record.LocalFile(path)); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("a name that is never free: %v", err)
	}
}

func TestShortOverloadsAreWaitedFor(t *testing.T) {
	proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
	s := at(t, proxy.Server, "", options(t))
	proxy.Set(s3test.OneIn(2, s3test.Overloaded))
	content := objectstest.Content(7*megabyte, 1)
	objectstest.Put(t, s, "run", "part.parquet", content)
	if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
		t.Error("another content")
	}
}

func TestABodyThatBreaksOffIsAskedForAgain(t *testing.T) {
	proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
	s := at(t, proxy.Server, "", options(t))
	content := objectstest.Content(3*megabyte, 1)
	objectstest.Put(t, s, "run", "part.parquet", content)
	proxy.Set(s3test.OneIn(2, s3test.TruncateResponse))
	if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
		t.Error("another content")
	}
	proxy.Set(s3test.TruncateResponse)
	if err := s.Delete(t.Context(), "other"); err != nil { // whose cache is another
		t.Fatal(err)
	}
	s.cache.forget("run")
	f, err := s.Open(t.Context(), "run", "part.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 100), 0); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Errorf("bodies that all break off: %v", err)
	}
}

func TestWhatIsDamagedInS3IsToldAndNotRead(t *testing.T) {
	standIn := s3test.NewStandIn(t, "results")
	s := at(t, standIn.Server, "", options(t))
	content := objectstest.Content(3*megabyte, 1)
	objectstest.Put(t, s, "run", "flipped.parquet", content)
	objectstest.Put(t, s, "run", "short.parquet", content)
	objectstest.Put(t, s, "run", "late.parquet", content)
	late, err := s.Open(t.Context(), "run", "late.parquet")
	if err != nil {
		t.Fatal(err)
	}
	standIn.Flip(t, "run/flipped.parquet", 2*megabyte)
	standIn.Shorten("run/short.parquet")
	standIn.Shorten("run/late.parquet")
	flipped, err := s.Open(t.Context(), "run", "flipped.parquet")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	if n, err := flipped.ReadAt(b, 0); err != nil || n != len(b) {
		t.Errorf("the sound beginning: %v", err)
	}
	for name, err := range map[string]error{
		"flipped":          second(flipped.ReadAt(b, 2*megabyte-500)),
		"short":            second(s.Open(t.Context(), "run", "short.parquet")),
		"shortened, begun": second(late.ReadAt(b, 3*megabyte-500)),
	} {
		if !engine.HasCode(err, engine.CodeInternal) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A block in the cache is no better than one in the storage.
	if _, err := flipped.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(s.cache.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<17), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	repeated, err := s.Open(t.Context(), "run", "flipped.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repeated.ReadAt(b, 0); err != nil || !bytes.Equal(b, content[:len(b)]) {
		t.Errorf("behind a damaged cache: %v", err)
	}
}

func TestAnObjectThatIsRemovedUnderAReaderIsTold(t *testing.T) {
	standIn := s3test.NewStandIn(t, "results")
	s := at(t, standIn.Server, "", options(t))
	objectstest.Put(t, s, "run", "part.parquet", []byte("content"))
	f, err := s.Open(t.Context(), "run", "part.parquet")
	if err != nil {
		t.Fatal(err)
	}
	standIn.Remove("run/part.parquet")
	if _, err := f.ReadAt(make([]byte, 2), 0); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%v", err)
	}
}
