package history

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func id(n int) (out [16]byte) {
	binary.BigEndian.PutUint64(out[8:], uint64(n))
	return out
}

// execution is one that ended n seconds after noon.
func execution(n int, took time.Duration, table string) *Record {
	end := noon.Add(time.Duration(n) * time.Second)
	return &Record{QueryID: id(n), Text: "SELECT 1", QueryType: "SELECT", Table: table, Start: end.Add(-took), End: end,
		Execution: took,
		Context:   Context{SessionID: int64(n % 3), User: "ANN", Warehouse: "W", Tag: "run"}, RowsProduced: 2,
		BytesScanned: 4096}
}

func TestQuery(t *testing.T) {
	s := New(Options{Lag: 10 * time.Second})
	for n := range 50_000 {
		r := execution(n, time.Second, "standard")
		if n%1000 == 0 {
			r.ErrorCode, r.ErrorMessage = "100051", "Division by zero"
		}
		s.Add(r)
	}
	now := noon.Add(50_000 * time.Second)
	// Pages backwards, as the enrichment reads them: each execution once.
	seen := map[[16]byte]bool{}
	to := now
	for {
		page := s.Query(Filter{From: noon, To: to, Limit: 10_000, Now: now})
		if len(page) == 0 {
			break
		}
		for i, r := range page {
			if seen[r.QueryID] {
				t.Fatalf("%x is told twice", r.QueryID)
			}
			seen[r.QueryID] = true
			if i > 0 && r.End.After(page[i-1].End) {
				t.Fatal("a page is out of order")
			}
		}
		to = page[len(page)-1].End.Add(-time.Nanosecond)
	}
	if want := 50_000 - 9; len(seen) != want { // the last ten seconds are not visible yet
		t.Errorf("%d executions, not %d", len(seen), want)
	}
	got := s.Query(Filter{Limit: 1, To: noon.Add(3000 * time.Second)})[0]
	want := *execution(3000, time.Second, "standard")
	want.ErrorCode, want.ErrorMessage = "100051", "Division by zero"
	if got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	if n := len(s.Query(Filter{})); n != 100 {
		t.Errorf("%d executions without a limit", n)
	}
}

func TestWhatIsLeftOut(t *testing.T) {
	s := New(Options{})
	for n, took := range []time.Duration{499 * time.Millisecond, 501 * time.Millisecond} {
		for i, table := range []string{"standard", "hybrid", "interactive"} {
			s.Add(execution(10*n+i, took, table))
		}
	}
	var tables []string
	for _, r := range s.Query(Filter{}) {
		tables = append(tables, fmt.Sprint(r.Table, " ", r.Total()))
	}
	slices.Sort(tables)
	if want := []string{"hybrid 501ms", "interactive 501ms", "standard 499ms", "standard 501ms"}; !slices.Equal(tables,
		want) {
		t.Errorf("the history has %v", tables)
	}
	var calls int64
	for _, a := range s.Aggregates(noon.Add(time.Hour)) {
		calls += a.Calls
	}
	if calls != 6 || s.total != 6 {
		t.Errorf("the aggregates have %d executions, the store %d", calls, s.total)
	}
}

func TestAggregates(t *testing.T) {
	s := New(Options{AggregateLag: 30 * time.Second})
	var exact []float64
	for n := range 120 {
		for k := range 20 {
			took := time.Duration(1+k*k) * time.Millisecond
			r := execution(n, took, "hybrid")
			r.Start, r.End = noon.Add(time.Duration(n)*time.Second), noon.Add(time.Duration(n)*time.Second+took)
			r.Throttled = int64(k % 2)
			if k == 19 {
				r.ErrorCode = "200001"
			}
			s.Add(r)
			if n < 60 {
				exact = append(exact, float64(took)/1e6)
			}
		}
	}
	slices.Sort(exact)
	list := s.Aggregates(noon.Add(2 * time.Minute))
	if len(list) != 1 {
		t.Fatalf("%d intervals are visible", len(list))
	}
	a := list[0]
	if a.Calls != 1200 || a.Throttled != 600 || !a.IntervalEnd.Equal(noon.Add(time.Minute)) {
		t.Errorf("%+v", a)
	}
	for _, q := range []struct{ q, got float64 }{{0.5, a.Total.Median}, {0.9, a.Total.P90},
		{0.99, a.Total.P99}, {0.999, a.Total.P999}} {
		want := exact[int(math.Ceil(q.q*float64(len(exact))))-1]
		if math.Abs(q.got/want-1) > 0.011 {
			t.Errorf("percentile %v is %v, exactly %v", q.q, q.got, want)
		}
	}
	if a.Total.Min != 1 || a.Total.Max != 362 {
		t.Errorf("from %v to %v ms", a.Total.Min, a.Total.Max)
	}
}

// TestMemoryIsBounded: what comes in is unlimited, what is kept is not.
func TestMemoryIsBounded(t *testing.T) {
	s := New(Options{Limit: 3 * chunkRows})
	long := strings.Repeat("x", maxText)
	for n := range 5 * chunkRows {
		r := execution(n, time.Second, "standard")
		if n < 1000 {
			r.Text = fmt.Sprint("SELECT ", n, long)
		}
		r.ErrorMessage = fmt.Sprint("message ", n)
		s.Add(r)
	}
	if s.rows < 2*chunkRows || s.rows > 4*chunkRows || s.total != 5*chunkRows {
		t.Errorf("%d executions are kept of %d", s.rows, s.total)
	}
	size := 0
	for _, text := range s.texts.values {
		size += len(text.text)
	}
	if size > maxTexts+maxText || len(s.failures.values) > maxFailures+1 {
		t.Errorf("%d bytes of texts and %d messages are kept", size, len(s.failures.values))
	}
}

// TestPages: whatever the window and the limit, a page is the latest of what ended in it.
func TestPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{})
		ends := rapid.SliceOfN(rapid.IntRange(0, 50), 0, 80).Draw(t, "ends")
		slices.Sort(ends)
		for i, n := range ends {
			r := execution(n, time.Second, "standard")
			r.QueryID = id(i)
			s.Add(r)
		}
		from, to, limit := rapid.IntRange(0, 50).Draw(t, "from"), rapid.IntRange(0, 50).Draw(t, "to"),
			rapid.IntRange(1, 90).Draw(t, "limit")
		var want []int
		for i := len(ends) - 1; i >= 0 && len(want) < limit; i-- {
			if ends[i] >= from && ends[i] <= to {
				want = append(want, i)
			}
		}
		got := s.Query(Filter{From: noon.Add(time.Duration(from) * time.Second),
			To: noon.Add(time.Duration(to) * time.Second), Limit: limit})
		if len(got) != len(want) {
			t.Fatalf("%d executions, not %d", len(got), len(want))
		}
		for i, r := range got {
			if r.QueryID != id(want[i]) {
				t.Fatalf("execution %d is another one", i)
			}
		}
	})
}

// BenchmarkMillion records a million executions and reads them in pages of ten thousand.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		s := New(Options{})
		for n := range 1_000_000 {
			s.Add(execution(n, time.Second, "standard"))
		}
		read := 0
		for to := (time.Time{}); ; {
			page := s.Query(Filter{To: to, Limit: 10_000})
			if len(page) == 0 {
				break
			}
			read += len(page)
			to = page[len(page)-1].End.Add(-time.Nanosecond)
		}
		if read != 1_000_000 {
			b.Fatal(read)
		}
	}
}
