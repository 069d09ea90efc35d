package worker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// onDisk is what the files below a folder take.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was given its name, or removed, in between
		}
		if err == nil {
			bytes += st.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// recorder writes the executions of a run worker into a spool, in parts of so many rows.
func recorder(t *testing.T, s *spool, rows int64) *record.Writer {
	t.Helper()
	w, err := record.NewWriter(record.WriterOptions{Dir: filepath.Join(s.dir, runID, "worker-0"), RunID: runID,
		ResultID: "test-1", WorkerID: "worker-0", PartRows: rows, Quota: runQuota{s, runID, "worker-0"}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// executions are n of them, that do not compress.
func executions(from, n int) []engine.Execution {
	recs := make([]engine.Execution, n)
	for i := range recs {
		at := int64(from+i) * 7919
		recs[i] = engine.Execution{StartedAt: at, DueAt: at, Elapsed: at % 1_000_003, Decode: at % 1_009,
			Seq: uint32(from + i), Success: true}
	}
	return recs
}

const spoolMB = 3 << 20

// replace gives an empty spool other rules.
func (s *spool) replace(p diskbudget.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = diskbudget.New(p)
}

// TestARecordLargerThanItsSpool: a run writes many times what the spool may take, while a server
// stores what is announced to it; the folder never holds more, every row arrives, and the run is not
// marked. A part counts from its first row until it is stored. Three are there at most, each of 23 % of the
// spool with what is asked for its end: one that waits to be announced, one that is being made
// durable, which nobody can fetch yet, and one that grows. Both of the latter are gone from the folder,
// or have hardly begun, whenever Write returns: the folder shows less than what counts.
func TestARecordLargerThanItsSpool(t *testing.T) {
	dir := t.TempDir()
	var s *spool
	var mu sync.Mutex // parts are announced by who writes, and by who makes a part durable
	fetched, bytes := int64(0), int64(0)
	s = newSpool(dir, spoolMB, 0, zerolog.Nop(), func(a engine.Artifact) {
		id := protocol.PartWorkID(a)
		path := filepath.Join(dir, id)
		if size, sum, err := record.Checksum(path); err != nil || size != a.SizeBytes || sum != a.SHA256 {
			t.Errorf("%s: %d bytes, %v", id, size, err)
		}
		mu.Lock()
		fetched, bytes = fetched+a.RowCount, bytes+a.SizeBytes
		mu.Unlock()
		if err := os.Rename(path, path+record.StoredSuffix); err != nil {
			t.Error(err)
		}
		s.apply(diskbudget.Acknowledged{Key: id})
		s.apply(diskbudget.Tick{})
	}, func([]string) {})
	w := recorder(t, s, 60_000)
	const rows = 1_200_000
	most := int64(0)
	for from := 0; from < rows; from += 5000 {
		if err := w.Write(executions(from, 5000)); err != nil {
			t.Fatalf("after %d rows: %v", from, err)
		}
		most = max(most, onDisk(t, dir))
	}
	parts, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	left, sizes := int64(0), int64(0)
	for _, a := range parts {
		if _, err := os.Stat(filepath.Join(dir, protocol.PartWorkID(a))); err == nil {
			left, sizes = left+a.RowCount, sizes+a.SizeBytes
		}
	}
	used, _ := s.used()
	if err := s.pressedBy(runID); err != nil {
		t.Errorf("the run was marked although a server stores its parts: %v", err)
	}
	if most > spoolMB || fetched+left != rows || used != sizes || onDisk(t, dir) != sizes {
		t.Errorf("at most %d bytes of %d; %d rows were fetched, %d are left of %d; %d bytes are counted, %d are there",
			most, spoolMB, fetched, left, rows, used, onDisk(t, dir))
	}
	if bytes < 3*spoolMB {
		t.Errorf("%d bytes were fetched, which shows nothing", bytes)
	}
	t.Logf("%d MB through %d MB, at most %d MB", (bytes+sizes)>>20, spoolMB>>20, most>>20)
}

// TestARunIsMarkedBeforeItsRecordEnds: without a server the load is to end while there is room, and what
// was written up to the last bit of it is whole.
func TestARunIsMarkedBeforeItsRecordEnds(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir, spoolMB, 0, zerolog.Nop(), func(engine.Artifact) {}, func([]string) {})
	w := recorder(t, s, 70_000)
	marked, written := -1, 0
	var err error
	for ; err == nil && written < 3_000_000; written += 5000 {
		if err = w.Write(executions(written, 5000)); err == nil && marked < 0 && s.pressedBy(runID) != nil {
			marked = written
		}
		if n := onDisk(t, dir); n > spoolMB {
			t.Fatalf("%d bytes are on the disk", n)
		}
	}
	if marked < 0 || written-marked < 5*5000 || !engine.HasCode(err, engine.CodeUnavailable) ||
		!strings.Contains(err.Error(), "Recording has stopped") {
		t.Fatalf("marked after %d rows, refused after %d: %v", marked, written, err)
	}
	parts, again := w.Close()
	if !errors.Is(again, err) {
		t.Errorf("closing: %v", again)
	}
	rows := int64(0)
	for _, a := range parts {
		p, err := record.OpenPart(filepath.Join(dir, protocol.PartWorkID(a)))
		if err != nil {
			t.Fatal(err)
		}
		rows += p.Artifact().RowCount
		_ = p.Close()
	}
	// Less than a row group was in memory.
	if int(rows) < written-(64<<10)-5000 || onDisk(t, dir) > spoolMB {
		t.Errorf("%d of %d rows are whole", rows, written)
	}
	t.Logf("marked after %d rows, refused after %d, %d are whole", marked, written, rows)
}

// TestALoadEndsWhenItsRecordMayNotFit: the run worker fails with the reason, and what was in flight is
// recorded: there is room for it.
func TestALoadEndsWhenItsRecordMayNotFit(t *testing.T) {
	spool := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 10
		s := connect(t, spool, l, nil)
		s.send(assign(), start(1))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		_, all := s.node.disk.used()
		s.node.disk.apply(
			diskbudget.Grow{Key: "run-1/worker-1/x.parquet", Kind: diskbudget.Record, Run: runID, Bytes: all / 10 * 9},
		)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		got, parts := s.last(), messages[protocol.WorkReady](s)
		if got.Status != engine.WorkerFailed || got.Err == nil ||
			!strings.Contains(got.Err.Message, "Recording has stopped") ||
			!strings.Contains(got.Err.Hint, "--spool-budget") {
			t.Errorf("%+v", got)
		}
		if len(parts) != 1 || parts[0].Artifact.RowCount != 10 {
			t.Errorf("parts %+v", parts)
		}
		marked := slices.IndexFunc(messages[protocol.WorkerState](s),
			func(m protocol.WorkerState) bool { return m.RecordEnded })
		if marked < 0 || messages[protocol.WorkerState](s)[marked].Status.Ended() {
			t.Error("the server was not told before the end")
		}
		s.end()
	})
}

// TestAStoredPartStaysForAWhile, for a server that asks again, and not for the next process.
func TestAStoredPartStaysForAWhile(t *testing.T) {
	for _, killed := range []bool{false, true} {
		spool := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			l := newFakeLoad()
			l.records = 10
			s := connect(t, spool, l, nil)
			p := diskbudget.PolicyFor(1 << 30)
			s.node.disk.replace(p)
			s.send(assign(), start(1))
			synctest.Wait()
			s.send(stop(2))
			time.Sleep(time.Second)
			synctest.Wait()
			part := messages[protocol.WorkReady](s)[0]
			s.send(protocol.ArtifactAck{RunID: runID, WorkerID: "worker-0", Name: part.Artifact.Name,
				SHA256: part.Artifact.SHA256})
			there := func() bool {
				f, err := s.node.Part(part.WorkID)
				if err == nil {
					_ = f.Close()
				} else if !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
				return err == nil
			}
			time.Sleep(diskbudget.AcknowledgedFor - 2*time.Second)
			synctest.Wait()
			if !there() || onDisk(t, spool) == 0 {
				t.Error("it has gone before its time")
			}
			if !killed {
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if used, _ := s.node.disk.used(); there() || onDisk(t, spool) != 0 || used != 0 {
					t.Errorf("it is still there, and %d bytes are counted", used)
				}
			} else if err := os.CopyFS(spool+"-killed", os.DirFS(spool)); err != nil {
				t.Error(err)
			}
			s.end()
		})
		if !killed {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			s := connect(t, spool+"-killed", newFakeLoad(), nil)
			synctest.Wait()
			if h := messages[protocol.Hello](s)[0]; len(h.Parts) != 0 {
				t.Errorf("the next process announces %+v", h.Parts)
			}
			s.end()
		})
		if n := onDisk(t, spool+"-killed"); n != 0 {
			t.Errorf("%d bytes are left by a process that was killed", n)
		}
	}
}

// TestAPartIsAnnouncedEarlyOnce: beside the load when the spool needs the room, and not again at its end.
func TestAPartIsAnnouncedEarlyOnce(t *testing.T) {
	spool := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := newFakeLoad()
		l.records = 10
		s := connect(t, spool, l, nil)
		s.node.disk.replace(diskbudget.Policy{Budget: 1 << 30, Low: 0, High: 1 << 30, Acknowledged: time.Hour})
		s.send(assign(), start(1))
		synctest.Wait()
		w := l.sink.(*record.Writer)
		if err := w.Write(executions(0, 100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if err := w.Write(executions(100, 100)); err != nil { // the first part is ten seconds old
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		early := messages[protocol.WorkReady](s)
		if len(early) != 1 || !early[0].Pressing || early[0].Artifact.RowCount != 200 {
			t.Fatalf("%+v", early)
		}
		s.send(protocol.ArtifactAck{RunID: runID, WorkerID: "worker-0", Name: early[0].Artifact.Name,
			SHA256: early[0].Artifact.SHA256})
		s.send(stop(2))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		all := messages[protocol.WorkReady](s)
		if len(all) != 2 || all[1].WorkID == all[0].WorkID || all[1].Artifact.RowCount != 10 || s.last().Parts != 2 {
			t.Errorf("%+v, %+v", all, s.last())
		}
		s.end()
	})
}

// TestAFileThatCannotBeRemovedCounts, is tried again, and holds nobody up for ever.
func TestAFileThatCannotBeRemovedCounts(t *testing.T) {
	s := newSpool(t.TempDir(), 1000, 0, zerolog.Nop(), func(engine.Artifact) {}, func([]string) {})
	broken := errors.New("the disk is read-only")
	s.remove = func(string) error { return broken }
	s.apply(diskbudget.Found{Key: "r/w/a.parquet", Kind: diskbudget.Record, Bytes: 900})
	s.apply(diskbudget.Acknowledged{Key: "r/w/a.parquet"})
	grow := diskbudget.Grow{Key: "r/w/b.parquet", Kind: diskbudget.Record, Run: "r", Bytes: 200}
	if !s.apply(grow) {
		t.Error("there was room beside a file that is still there")
	}
	if used, _ := s.used(); used != 900 {
		t.Errorf("%d bytes are counted", used)
	}
	s.remove = os.Remove
	s.apply(diskbudget.Tick{})
	if used, _ := s.used(); used != 0 || s.apply(grow) {
		t.Errorf("%d bytes are counted after it could be removed", used)
	}
}

// used is what the files take, and what they may.
func (s *spool) used() (bytes, of int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Used(), s.b.Policy().Budget
}
