package load

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/uring"
	"github.com/loadstone-db/loadstone/engine/target"
)

// fedConn keeps what its loop feeds it.
type fedConn struct {
	target.EventConn
	fed []byte
}

func (c *fedConn) Feed(data []byte, _ *target.Result) (bool, []byte, error) {
	c.fed = append(c.fed, data...)
	return false, nil, nil
}

func (c *fedConn) Broken() bool { return false }

func (c *fedConn) Prefetch() int64 { return 0 }

// TestAnOldKernelIsAsked: auto leaves a kernel that bounds nothing to epoll, and says so; by name it is taken.
func TestAnOldKernelIsAsked(t *testing.T) {
	yes, no := func() error { return nil }, func() error { return uring.ErrUnbounded }
	for asked, want := range map[engine.IOEngine]string{
		engine.IOAuto:  "io_uring has to be asked for here: before Linux 6.14 nothing bounds what one call completes",
		"":             "io_uring has to be asked for here: before Linux 6.14 nothing bounds what one call completes",
		engine.IOUring: askedFor,
	} {
		e := &eventLoops{g: &Group{cfg: Config{Workload: engine.Workload{IOEngine: asked}}}}
		e.entered.Store(1)
		e.refusal = ringRefusal(asked, yes, no)
		if got := e.reason(); got != want || (e.refusal == nil) != (asked == engine.IOUring) {
			t.Errorf("%q: %q, %v", asked, got, e.refusal)
		}
	}
}

// TestFallingBack from a ring that works: an error that passes sends nothing twice and loses no answer.
func TestFallingBack(t *testing.T) {
	if err := uring.Probe(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := &eventLoops{g: &Group{clock: newClock(nil)}}
	l, err := newEventLoop(e)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	r, err := newRingSockets(l)
	if err != nil {
		t.Fatal(err)
	}
	l.take(r)
	const slots = 30
	conns, servers := make([]*fedConn, slots), make([]int, slots)
	take := func(i int) *slot {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
		conns[i], servers[i] = &fedConn{}, fds[1]
		s := &slot{event: eventState{conn: conns[i], fd: fds[0], at: atAnswer}}
		if !l.register(s) {
			t.Fatal("it is not watched")
		}
		return s
	}
	send := func(s *slot) {
		if err := l.sockets.send(s, append(l.sockets.room(), "request"...)); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(i int, text string) {
		if _, err := unix.Write(servers[i], []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	// A third has sent and is answered, a third has not sent, and a third has just come.
	var later []*slot
	for i := range slots {
		switch i % 3 {
		case 0:
			send(take(i))
		case 1:
			later = append(later, take(i))
		}
	}
	r.wait(0)
	for _, s := range later {
		send(s)
	}
	for i := range slots {
		if i%3 == 2 {
			send(take(i))
		}
	}
	for i := 0; i < slots; i += 3 {
		answer(i, "early ")
	}
	if err := r.fallBack(&uring.RefusedError{Call: "io_uring_enter", Errno: unix.ENOMEM}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < slots; i += 3 {
		answer(i, "late ")
	}
	l.clear()
	want := map[int]string{0: "early late last", 1: "last", 2: "last"}
	for i := range slots {
		answer(i, "last")
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if l.sockets.wait(int64(10 * time.Millisecond)) {
			l.sockets.handle()
		} else {
			break
		}
	}
	request := make([]byte, 100)
	for i, c := range conns {
		if string(c.fed) != want[i%3] {
			t.Errorf("slot %d was answered %q, want %q", i, c.fed, want[i%3])
		}
		if n, err := unix.Read(servers[i], request); err != nil || string(request[:n]) != "request" {
			t.Errorf("slot %d sent %q, %v", i, request[:max(n, 0)], err)
		}
	}
	if l.engine() != engine.IOEvents || !errors.Is(e.refusal, unix.ENOMEM) {
		t.Errorf("%s, %v", l.engine(), e.refusal)
	}
}
