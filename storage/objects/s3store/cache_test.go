package s3store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/objects/objectstest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// onDisk is how many bytes a folder holds.
func onDisk(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		n += st.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func at8(i int) blockID {
	return blockID{"run", "part.parquet", "sum", int64(i)}
}

func TestTheCacheEvictsWhatWasNotUsedForLongest(t *testing.T) {
	dir := t.TempDir()
	c, err := openCache(dir, 1000, func() error { return nil }, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("x"), 300)
	for i := range 3 {
		c.put(at8(i), block)
	}
	if c.get(at8(0)) == nil {
		t.Fatal("the first is gone")
	}
	c.put(at8(3), block)
	if c.has(at8(1)) || !c.has(at8(0)) || !c.has(at8(2)) || !c.has(at8(3)) {
		t.Error("another was evicted than the one that was not used for longest")
	}
	if n := onDisk(t, dir); n != 900 || c.used != n {
		t.Errorf("%d bytes on disk, %d counted", n, c.used)
	}
	c.put(at8(9), bytes.Repeat([]byte("x"), 1001))
	if n := onDisk(t, dir); n != 900 {
		t.Errorf("%d bytes on disk after a block that does not fit", n)
	}
	// The next process goes on with it, and with less where it may keep less.
	c, err = openCache(dir, 700, func() error { return nil }, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	if n := onDisk(t, dir); n != 600 || c.used != n {
		t.Errorf("%d bytes on disk of 700 that are allowed, %d counted", n, c.used)
	}
	c.forget("other")
	c.forget("run")
	if n := onDisk(t, dir); n != 0 || c.used != 0 {
		t.Errorf("%d bytes on disk of a run that is forgotten, %d counted", n, c.used)
	}
}

func TestTheCacheLeavesTheReserveFree(t *testing.T) {
	dir := t.TempDir()
	full := false
	room := func() error {
		if full && onDisk(t, dir) > 300 {
			return errors.New("full")
		}
		return nil
	}
	c, err := openCache(dir, 10_000, room, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	block := bytes.Repeat([]byte("x"), 100)
	for i := range 10 {
		c.put(at8(i), block)
	}
	full = true
	c.put(at8(10), block)
	if n := onDisk(t, dir); n != 400 { // what was left to the reserve, and the new one
		t.Errorf("%d bytes are kept on a disk that is down to its reserve", n)
	}
	if !c.has(at8(10)) || !c.has(at8(9)) || c.has(at8(0)) {
		t.Error("the newest were evicted")
	}
}

// TestAFullDiskUnderTheCacheStopsNoReader: nothing in the cache is needed.
func TestAFullDiskUnderTheCacheStopsNoReader(t *testing.T) {
	opts := options(t)
	s := at(t, s3test.NewStandIn(t, "results").Server, "", opts)
	content := objectstest.Content(3*megabyte, 1)
	objectstest.Put(t, s, "run", "part.parquet", content)
	// Nothing can be made in a folder whose place a file has.
	if err := os.RemoveAll(opts.CacheDir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(opts.CacheDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
			t.Error("another content")
		}
	}
	if s.cache.used != 0 {
		t.Errorf("%d bytes are counted that are not there", s.cache.used)
	}
}

func TestReadingAgainAsksForNothing(t *testing.T) {
	proxy := s3test.NewProxy(t, s3test.NewStandIn(t, "results").Server)
	opts := options(t)
	s := at(t, proxy.Server, "", opts)
	content := objectstest.Content(20*megabyte, 1)
	objectstest.Put(t, s, "run", "part.parquet", content)

	// A little of it costs a block, all of it a few requests that grow.
	sent := proxy.Sent.Load()
	f, err := s.Open(t.Context(), "run", "part.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 8), f.Size()-8); err != nil {
		t.Fatal(err)
	}
	if n := proxy.Sent.Load() - sent; n > blockSize(f.Size()) {
		t.Errorf("%d bytes were sent for the last 8", n)
	}
	requested := proxy.Requests.Load()
	if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
		t.Error("another content")
	}
	if n := proxy.Requests.Load() - requested; n > 10 {
		t.Errorf("%d requests for 20 MB from front to back", n)
	}
	requested = proxy.Requests.Load()
	_ = objectstest.Read(t, s, "run", "part.parquet")
	if n := proxy.Requests.Load() - requested; n != 0 {
		t.Errorf("%d requests for what is cached", n)
	}
	// Nor does the next process, but for what the object is.
	s = at(t, proxy.Server, "", opts)
	requested = proxy.Requests.Load()
	if !bytes.Equal(objectstest.Read(t, s, "run", "part.parquet"), content) {
		t.Error("another content")
	}
	if n := proxy.Requests.Load() - requested; n != 1 {
		t.Errorf("%d requests of the next process", n)
	}
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if n := onDisk(t, opts.CacheDir); n != 0 {
		t.Errorf("%d bytes of a deleted run are left in the cache", n)
	}
}
