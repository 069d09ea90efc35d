package diskbudget

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// small has the watermarks 60 and 85 of a budget of 100, and 50 for the spool.
func small() Policy { return PolicyFor(100) }

// machine applies events one second after the other.
type machine struct {
	*Budget
	t   *testing.T
	now time.Time
}

func newMachine(t *testing.T) *machine { return &machine{New(small()), t, start} }

func (m *machine) wants(h Event, want ...Action) {
	m.t.Helper()
	m.now = m.now.Add(time.Second)
	got := m.Apply(m.now, h)
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		m.t.Fatalf("%T%+v:\n got %s\nwant %s", h, h, text(got), text(want))
	}
}

func text(actions []Action) string { return fmt.Sprintf("%#v", actions) }

// has puts a whole file on the disk.
func (m *machine) has(key string, k Kind, bytes int64, steps ...Event) {
	m.t.Helper()
	g := Grow{Key: key, Kind: k, Bytes: bytes}
	if k == Record {
		g.Run = "run"
	}
	m.wants(g, Granted{g})
	m.wants(Finished{Key: key})
	for _, s := range steps {
		m.wants(s)
	}
}

// TestTheOrderInWhichFilesGo: the cache before what is acknowledged, before what is expired,
// before the oldest that nobody has fetched; and no more than is needed.
func TestTheOrderInWhichFilesGo(t *testing.T) {
	m := newMachine(t)
	m.has("first", Work, 10, Announced{"first"})
	m.has("expired", Work, 10, Announced{"expired"})
	m.now = m.now.Add(AnnouncedFor) // both, but nothing looks
	m.has("done", Work, 10, Announced{"done"}, Acknowledged{"done"})
	m.has("cache", Cache, 10)
	m.has("later", Work, 10, Announced{"later"})
	grow := Grow{Key: "new", Kind: Work, Bytes: 50}
	m.wants(grow, Granted{grow}, // 100 of 100: above the high watermark, down to 60
		Delete{"cache", ReasonCache}, Delete{"done", ReasonAcknowledged}, Redo{"first"}, Delete{"first", ReasonExpired},
		Redo{"expired"}, Delete{"expired", ReasonExpired})
	more := Grow{Key: "new", Kind: Work, Bytes: 10}
	m.wants(more) // until a file is gone
	m.wants(Gone{"done"}, Granted{more})
	m.wants(Gone{"cache"})
	m.wants(Gone{"first"})
	m.wants(Gone{"expired"})
	// 70 are used; nothing but what nobody has fetched could go.
	m.wants(Grow{Key: "new", Kind: Work, Bytes: 35}, Redo{"later"}, Delete{"later", ReasonOldest})
	m.wants(Gone{"later"}, Granted{Grow{Key: "new", Kind: Work, Bytes: 35}})
	m.wants(Grow{Key: "new", Kind: Work, Bytes: 10}, Refused{Grow{Key: "new", Kind: Work, Bytes: 10}})
	if m.Used() != 95 {
		t.Errorf("%d are used", m.Used())
	}
}

// TestARunIsMarkedBeforeAnythingIsRefused, and its executions never go unfetched.
func TestARunIsMarkedBeforeAnythingIsRefused(t *testing.T) {
	m := newMachine(t)
	m.has("one", Record, 55)
	part := func(key string, bytes int64) Grow { return Grow{Key: key, Kind: Record, Run: "run", Bytes: bytes} }
	m.wants(part("two", 25), Granted{part("two", 25)}, Announce{"one"}) // 80
	m.wants(Announced{"one"})
	m.now = m.now.Add(2 * AnnouncedFor)
	m.wants(Tick{})
	m.wants(part("two", 10), Degrade{"run"}, Granted{part("two", 10)}) // 90
	m.wants(part("two", 10), Granted{part("two", 10)})                 // 100
	m.wants(part("two", 1), Refused{part("two", 1)})
	m.wants(Acknowledged{"one"}, Delete{"one", ReasonAcknowledged}) // above the high watermark
	m.wants(part("two", 1))
	m.wants(Gone{"one"}, Granted{part("two", 1)})
	// Another run, that would not fit at once, is marked first too.
	other := Grow{Key: "other", Kind: Record, Run: "other", Bytes: 99}
	m.wants(other, Degrade{"other"}, Refused{other})
	m.wants(other, Refused{other})
	m.wants(Ended{"other"})
	m.wants(other, Degrade{"other"}, Refused{other})
}

// TestTheCacheLeavesTheFloorToTheSpool, and makes room for itself only in the cache.
func TestTheCacheLeavesTheFloorToTheSpool(t *testing.T) {
	m := newMachine(t)
	m.has("done", Work, 20, Acknowledged{"done"})
	m.has("a", Cache, 20)
	m.has("b", Cache, 20)
	m.wants(Used{"a"})
	grow := Grow{Key: "c", Kind: Cache, Bytes: 20}
	m.wants(grow, Delete{"b", ReasonCache})
	m.wants(Gone{"b"}, Granted{grow})
	large := Grow{Key: "d", Kind: Cache, Bytes: 51}
	m.wants(large, Refused{large})
	// The spool takes what the cache has, down to nothing; but not what is being written.
	work := Grow{Key: "w", Kind: Work, Bytes: 60}
	m.wants(work, Delete{"a", ReasonCache})
	m.wants(Gone{"a"}, Granted{work}, Delete{"done", ReasonAcknowledged})
}

// TestTimesOfArtifacts: 30 s after it was acknowledged, 10 min after it was announced, and a run's
// executions for as long as nobody has them.
func TestTimesOfArtifacts(t *testing.T) {
	m := newMachine(t)
	m.has("done", Work, 1, Announced{"done"}, Acknowledged{"done"})
	m.has("asked", Work, 1, Announced{"asked"})
	m.has("record", Record, 1, Announced{"record"})
	at := func(d time.Duration, want ...Action) {
		t.Helper()
		got := m.Apply(m.now.Add(d), Tick{})
		if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("after %v: %s", d, text(got))
		}
	}
	// Two files followed the first, in 6 s.
	at(AcknowledgedFor - 6*time.Second - time.Nanosecond)
	at(AcknowledgedFor-6*time.Second, Delete{"done", ReasonAcknowledged})
	at(AnnouncedFor - 3*time.Second - time.Nanosecond)
	at(AnnouncedFor-3*time.Second, Redo{"asked"}, Delete{"asked", ReasonExpired})
	at(1000 * time.Hour)
	m.wants(Acknowledged{"record"})
	m.wants(Tick{})
	at(AcknowledgedFor+time.Second, Delete{"record", ReasonAcknowledged})
}

// TestWhatWasThereBeforeCounts, also beyond the budget: then nothing is written until it is below.
func TestWhatWasThereBeforeCounts(t *testing.T) {
	m := newMachine(t)
	m.wants(Found{Key: "old", Kind: Record, Run: "before", Bytes: 150}, Announce{"old"})
	grow := Grow{Key: "new", Kind: Record, Run: "run", Bytes: 1}
	m.wants(grow, Degrade{"run"}, Refused{grow}, Announce{"old"})
	m.wants(Announced{"old"})
	m.wants(Acknowledged{"old"}, Delete{"old", ReasonAcknowledged})
	m.wants(Gone{"old"})
	m.wants(grow, Granted{grow})
}

// TestWhatWasAskedForAndNotWrittenIsGivenBack, to who waits for it.
func TestWhatWasAskedForAndNotWrittenIsGivenBack(t *testing.T) {
	m := newMachine(t)
	part := Grow{Key: "part", Kind: Work, Bytes: 40}
	m.wants(part, Granted{part})
	m.has("old", Work, 20)
	grow := Grow{Key: "new", Kind: Work, Bytes: 50}
	m.wants(grow, Redo{"old"}, Delete{"old", ReasonOldest})
	m.wants(Finished{"part", 30}, Granted{grow})
	m.wants(Finished{"part", 10})
	if m.Used() != 100 {
		t.Errorf("%d are used", m.Used())
	}
}

// TestManyFilesAreNoMoreWorkEach: what one event costs does not grow with the files there are.
// A day of a run is some thousand parts, all of which are announced and acknowledged at its end.
func TestManyFilesAreNoMoreWorkEach(t *testing.T) {
	b := New(PolicyFor(1 << 40))
	const files = 100_000 // with a look at each of them at each event, hours
	key := make([]string, files)
	for i := range key {
		key[i] = fmt.Sprintf("run/worker/part-%d", i)
		b.Apply(start, Found{Key: key[i], Kind: Record, Run: "run", Bytes: 1})
	}
	for _, k := range key {
		b.Apply(start, Announced{k})
	}
	gone := 0
	for i, k := range key {
		b.Apply(start.Add(time.Duration(i)*time.Millisecond), Acknowledged{k})
		for _, a := range b.Apply(start.Add(time.Duration(i)*time.Millisecond), Tick{}) {
			b.Apply(start, Gone{a.(Delete).Key})
			gone++
		}
	}
	if want := files - int(AcknowledgedFor/time.Millisecond); gone != want || b.Used() != int64(files-want) {
		t.Errorf("%d are gone, %d left, want %d", gone, b.Used(), want)
	}
}
