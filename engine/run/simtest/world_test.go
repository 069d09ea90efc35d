package simtest

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// world is the loop: it decides what happens next, and by the seed how.
type world struct {
	chance *rand.Rand
	begun  time.Time
	wake   chan struct{}

	mu sync.Mutex
	// fresh was handed over since everything was at rest last.
	fresh []handed
	wrong []string

	// What follows belongs to the loop.
	queue timers
	count int64
	trace bytes.Buffer
}

// handed is what a goroutine has handed to the loop; key orders what came at one moment.
type handed struct {
	at  time.Time
	key string
	n   int
	do  func()
}

func newWorld(seed uint64) *world {
	return &world{chance: rand.New(rand.NewPCG(seed, 0x10ad)), begun: time.Now(), wake: make(chan struct{}, 1)}
}

// hand gives the loop something to do as soon as everything is at rest. Things with the same
// key are done in the order in which they came: they come from one goroutine.
func (w *world) hand(key string, do func()) {
	w.mu.Lock()
	w.fresh = append(w.fresh, handed{time.Now(), key, len(w.fresh), do})
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// after has the loop do something later.
func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.queue, timer{time.Now().Add(max(d, 1)), w.count, do})
}

// between is a time by chance. Its nanoseconds keep things from happening at one moment.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.chance.Int64N(int64(most-least)+1))
}

// oneIn is true once in n times.
func (w *world) oneIn(n int) bool { return w.chance.IntN(n) == 0 }

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	fmt.Fprintf(&w.trace, "%14.9f ", time.Since(w.begun).Seconds())
	fmt.Fprintf(&w.trace, format, args...)
	w.trace.WriteByte('\n')
}

// violated notes that an invariant does not hold. It may be called by any goroutine.
func (w *world) violated(invariant int, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < 20 {
		w.wrong = append(w.wrong, fmt.Sprintf("%.9f invariant %d: ", time.Since(w.begun).Seconds(), invariant)+
			fmt.Sprintf(format, args...))
	}
}

func (w *world) verdict() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrong)
}

// rest waits until nothing moves, and takes in what was handed over.
func (w *world) rest() {
	for {
		synctest.Wait()
		w.mu.Lock()
		fresh := w.fresh
		w.fresh = nil
		w.mu.Unlock()
		if len(fresh) == 0 {
			return
		}
		slices.SortFunc(fresh, func(a, b handed) int {
			return cmp.Or(a.at.Compare(b.at), strings.Compare(a.key, b.key), cmp.Compare(a.n, b.n))
		})
		for _, h := range fresh {
			h.do()
		}
	}
}

// run lets things happen until done says that it is enough, or d has passed; it reports which.
func (w *world) run(d time.Duration, done func() bool) bool {
	end := time.Now().Add(d)
	for {
		w.rest()
		if done() {
			return true
		}
		now := time.Now()
		if !now.Before(end) {
			return false
		}
		if len(w.queue) > 0 && !w.queue[0].at.After(now) {
			heap.Pop(&w.queue).(timer).do()
			continue
		}
		next := end
		if len(w.queue) > 0 && w.queue[0].at.Before(next) {
			next = w.queue[0].at
		}
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-w.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// timer is something that the loop does at a time.
type timer struct {
	at time.Time
	n  int64
	do func()
}

type timers []timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].n, h[j].n)) < 0
}
func (h timers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timers) Push(x any)   { *h = append(*h, x.(timer)) }
func (h *timers) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = timer{}
	*h = (*h)[:len(*h)-1]
	return last
}
