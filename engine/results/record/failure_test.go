package record

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// failing is a file that takes so many bytes and then fails.
type failing struct {
	file
	left    int
	err     error
	syncErr error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.err != nil && len(b) > f.left {
		n, _ := f.file.Write(b[:f.left])
		f.left = 0
		return n, f.err
	}
	f.left -= len(b)
	return f.file.Write(b)
}

func (f *failing) Sync() error { return errors.Join(f.file.Sync(), f.syncErr) }

// failSecond lets the first part pass and fails the second as told.
func failSecond(w *Writer, fail func(f *failing)) {
	create, parts := w.create, 0
	w.create = func(path string) (file, error) {
		f, err := create(path)
		parts++
		if err != nil || parts == 1 {
			return f, err
		}
		wrapped := &failing{file: f, left: 1 << 30}
		fail(wrapped)
		return wrapped, nil
	}
}

func writeAll(w *Writer, recs []engine.Execution) error {
	for i := 0; i < len(recs); i += 1000 {
		if err := w.Write(recs[i:min(i+1000, len(recs))]); err != nil {
			return err
		}
	}
	return nil
}

func checkDead(t *testing.T, w *Writer, err error, dir string) {
	t.Helper()
	var user *engine.Error
	if !errors.As(err, &user) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(user.Message, dir) || user.Hint == "" {
		t.Fatalf("message %q, hint %q", user.Message, user.Hint)
	}
	if again := w.Write(realistic(10, 1, 10, 0, 0)); !errors.Is(again, err) {
		t.Fatalf("dead writer answered %v", again)
	}
	parts, closeErr := w.Close()
	if !errors.Is(closeErr, err) || len(parts) != 1 {
		t.Fatalf("%d parts and %v", len(parts), closeErr)
	}
	if rows := readAll(t, filepath.Join(dir, parts[0].Name)); int64(len(rows)) != parts[0].RowCount {
		t.Fatalf("%d rows, want %d", len(rows), parts[0].RowCount)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestDiskFullWhileWriting(t *testing.T) {
	dir := t.TempDir()
	opts := testOptions(dir)
	opts.PartRows = rowGroupRows
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	failSecond(w, func(f *failing) { f.left, f.err = 1000, syscall.ENOSPC })
	checkDead(t, w, writeAll(w, realistic(3*rowGroupRows, 16, 100, 0, 0)), dir)
}

func TestDiskFullAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	opts := testOptions(dir)
	opts.PartRows = rowGroupRows
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	failSecond(w, func(f *failing) { f.syncErr = syscall.ENOSPC })
	if err := writeAll(w, realistic(2*rowGroupRows, 16, 100, 0, 0)); err != nil {
		t.Fatal(err)
	}
	parts, err := w.Close()
	if !errors.Is(err, syscall.ENOSPC) || len(parts) != 1 {
		t.Fatalf("%d parts and %v", len(parts), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Fatalf("left behind: %v", left)
	}
}

// TestRealDiskFull fills a small file system; it needs the right to mount one.
func TestRealDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no tmpfs here: %s", out)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	opts := testOptions(dir)
	opts.PartRows = rowGroupRows
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	recs := realistic(3*rowGroupRows, 16, 100, 0, 0)
	if err := writeAll(w, recs[:rowGroupRows+1000]); err != nil {
		t.Fatal(err)
	}
	// A part becomes durable while the next one is written: on a busy machine the disk was full before it was.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if done, _ := filepath.Glob(filepath.Join(dir, "*.parquet")); len(done) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the first part has not become durable")
		}
	}
	checkDead(t, w, writeAll(w, recs[rowGroupRows+1000:]), dir)
}

func TestFolderThatCannotBeMade(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var user *engine.Error
	if _, err := NewWriter(testOptions(filepath.Join(plain, "spool"))); !errors.As(err, &user) {
		t.Fatalf("error %v", err)
	}
	opts := testOptions(t.TempDir())
	opts.WorkerID = "../x"
	if _, err := NewWriter(opts); err == nil {
		t.Fatal("a worker id that climbs was accepted")
	}
}

func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	opts := testOptions(dir)
	opts.PartRows = rowGroupRows
	killed, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAll(killed, realistic(2*rowGroupRows+5000, 16, 100, 0, 100)); err != nil {
		t.Fatal(err)
	}
	if err := killed.awaitFinished(); err != nil { // as if the process were killed here
		t.Fatal(err)
	}
	killed.part.f.Close()

	whole, err := os.ReadFile(filepath.Join(dir, name(1)))
	if err != nil {
		t.Fatal(err)
	}
	for torn, b := range map[string][]byte{"executions-torn-00001.parquet": whole[:len(whole)-9],
		"executions-torn-00002.parquet": nil,
		"executions-torn-00003.parquet": []byte("PAR1PAR1"), "other.txt": []byte("kept")} {
		if err := os.WriteFile(filepath.Join(dir, torn), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Salvage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Fatalf("salvaged %d parts, want 2", len(found))
	}
	for i, a := range found {
		want := killed.done[i]
		// Both tell the creation time to the second at least.
		if d := a.CreatedAt.Sub(want.CreatedAt.Time); d > time.Second || d < -time.Second {
			t.Fatalf("created at %v, want %v", a.CreatedAt, want.CreatedAt)
		}
		a.CreatedAt, want.CreatedAt = engine.Time{}, engine.Time{}
		if a != want {
			t.Fatalf("salvaged %+v, want %+v", a, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Fatalf("left %v", left)
	}
	if none, err := Salvage(filepath.Join(dir, "absent")); err != nil || none != nil {
		t.Fatalf("missing folder: %v, %v", none, err)
	}
	// A writer that follows does not touch the salvaged parts.
	next, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Write(realistic(10, 1, 10, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if parts, err := next.Close(); err != nil || len(parts) != 1 || parts[0].Name != name(3) {
		t.Fatalf("%+v, %v", parts, err)
	}
}

func TestPartsRotateByAge(t *testing.T) {
	opts := testOptions(t.TempDir())
	opts.PartAge = time.Nanosecond
	w, err := NewWriter(opts)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Write(realistic(10, 1, 10, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for _, a := range parts {
		rows += a.RowCount
	}
	if len(parts) < 2 || rows != 30 {
		t.Fatalf("%d parts with %d rows", len(parts), rows)
	}
}

func TestNothingWrittenMakesNoPart(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(nil); err != nil {
		t.Fatal(err)
	}
	if parts, err := w.Close(); err != nil || len(parts) != 0 {
		t.Fatalf("%v, %v", parts, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// TestAnyExecutionSurvives writes arbitrary executions, open loop, long gaps and
// all-failing runs included, and reads them back by reflection and by column.
func TestAnyExecutionSurvives(t *testing.T) {
	base := t.TempDir()
	duration := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1e6), rapid.Int64Range(0, 1<<50))
	execution := rapid.Custom(func(t *rapid.T) engine.Execution {
		due := rapid.Int64Range(0, 1<<62).Draw(t, "due")
		r := engine.Execution{
			DueAt: due, StartedAt: due, Elapsed: duration.Draw(t, "elapsed"), PoolWait: duration.Draw(t, "wait"),
			Decode:       duration.Draw(t, "decode"),
			Seq:          rapid.Uint32().Draw(t, "seq"),
			ConnectionID: rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32()).Draw(t, "conn"),
			Rows:         rapid.Int32().Draw(t, "rows"), Statement: rapid.Uint16().Draw(t, "statement"),
			Step:    rapid.Uint16().Draw(t, "step"),
			Retries: rapid.Uint8().Draw(t, "retries"),
			Kind:    engine.Kind(rapid.IntRange(0, int(engine.NumKinds)-1).Draw(t, "kind")),
			Warmup:  rapid.Bool().Draw(t, "warmup"), Success: rapid.Bool().Draw(t, "success"),
		}
		if lag := duration.Draw(t, "lag"); lag > 0 {
			r.ScheduleLag, r.StartedAt = lag, due+lag
		}
		if rapid.Bool().Draw(t, "history") {
			copy(r.QueryID[:], rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "query id"))
		}
		if !r.Success {
			r.ErrorID = rapid.Uint32Range(0, 3).Draw(t, "error")
		}
		return r
	})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "spool")
		if err != nil {
			rt.Fatal(err)
		}
		recs := rapid.SliceOfN(execution, 1, 300).Draw(rt, "executions")
		w, err := NewWriter(testOptions(dir))
		if err != nil {
			rt.Fatal(err)
		}
		for rest := recs; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			if err := w.Write(rest[:n]); err != nil {
				rt.Fatal(err)
			}
			rest = rest[n:]
		}
		parts, err := w.Close()
		if err != nil || len(parts) != 1 {
			rt.Fatal(parts, err)
		}
		path := filepath.Join(dir, parts[0].Name)
		rows := readAll(t, path)
		if len(rows) != len(recs) {
			rt.Fatalf("%d rows, want %d", len(rows), len(recs))
		}
		for i, got := range rows {
			check(t, i, got, recs[i])
		}
		checkColumns(t, path, recs)
	})
}

// checkColumns reads the part by column.
func checkColumns(t *testing.T, path string, recs []engine.Execution) {
	t.Helper()
	p, err := OpenPart(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	lag, err1 := p.Doubles(0, ColScheduleLagMs, nil)
	started, err2 := p.Int64s(0, ColStartedAt, nil)
	conns, err3 := p.Int32s(0, ColConnectionID, nil)
	success, err4 := p.Bools(0, ColSuccess, nil)
	codes, values, err5 := p.Strings(0, ColErrorCode, nil)
	ids, texts, err6 := p.Strings(0, ColServerQueryID, nil)
	queries, err7 := p.QueryIDs(0, nil)
	decode, err8 := p.Int64s(0, ColDecodeNs, nil)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		t.Fatal(err)
	}
	for i, r := range recs {
		code := ""
		if codes[i] >= 0 {
			code = values[codes[i]]
		}
		query := ""
		if ids[i] >= 0 {
			query = texts[ids[i]]
		}
		if ns(lag[i]) != r.ScheduleLag || started[i] != r.StartedAt || uint32(conns[i]) != r.ConnectionID ||
			success[i] != r.Success || code != testErrors[r.ErrorID].Code || query != r.QueryID.String() ||
			queries[i] != r.QueryID || decode[i] != r.Decode {
			t.Fatalf("row %d differs from %+v", i, r)
		}
	}
}

// FuzzOpenPart feeds damaged files to the footer's reader: it may refuse them,
// it must not panic. Pages are not read here: their sizes are the decoder's to
// believe, and a part's SHA-256 is checked before it is read.
func FuzzOpenPart(f *testing.F) {
	dir := f.TempDir()
	w, err := NewWriter(testOptions(dir))
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Write(realistic(200, 4, 10, 1e6, 10)); err != nil {
		f.Fatal(err)
	}
	parts, err := w.Close()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, parts[0].Name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := OpenPart(path)
		if err != nil {
			return
		}
		defer p.Close()
		if p.Artifact().RowCount < 0 || p.RowGroups() < 0 {
			t.Fatalf("accepted %+v", p.Artifact())
		}
	})
}
