package uring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine/base/uring/uringtest"
)

// asChild makes this program try for a ring under a limit, and print what comes of it.
const asChild = "LOADSTONE_TEST_RING_UNDER"

func TestMain(m *testing.M) {
	if under := os.Getenv(asChild); under != "" {
		os.Exit(child(under))
	}
	os.Exit(m.Run())
}

// child tries for as many rings as a run has on a small machine.
func child(under string) int {
	runtime.LockOSThread()
	var err error
	switch under {
	case "seccomp":
		err = uringtest.Forbid(unix.EPERM)
	case "memlock":
		limit := unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		err = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	case "memlock none":
		err = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for range 2 {
		r, err := New()
		if err != nil {
			fmt.Println("no:", err)
			return 0
		}
		defer r.Close(nil)
	}
	fmt.Println("yes")
	return 0
}

// newTestRing is a ring of the test's thread.
func newTestRing(t *testing.T) *Ring {
	t.Helper()
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(nil) })
	return r
}

// pair is two sockets that are connected.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

// tcpPair is two sockets that are connected over the loopback.
func tcpPair(t *testing.T) (a, b int) {
	t.Helper()
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	err2 := unix.Connect(a, address)
	b, _, err3 := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err := errors.Join(err1, err2, err3, unix.SetNonblock(a, true)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(a) })
	return a, b
}

// until turns the ring until done, and gives it each completion.
func until(t *testing.T, r *Ring, done func() bool, each func(Completion)) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
		if err := r.Wait(10*time.Millisecond, false); err != nil {
			t.Fatal(err)
		}
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			each(c)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestManySockets: what is sent on each of many sockets comes back in order, with more requests than the queue holds.
func TestManySockets(t *testing.T) {
	r := newTestRing(t)
	const sockets, rounds = 3 * queueSize, 20
	ends, others := make([]int, sockets), make([]int, sockets)
	for i := range ends {
		ends[i], others[i] = pair(t)
		must(t, r.Receive(others[i], uint64(i)))
	}
	want, got := make([][]byte, sockets), make([][]byte, sockets)
	total, arrived := 0, 0
	for round := range rounds {
		for i, fd := range ends {
			text := fmt.Appendf(r.Room(), "%d/%d.", i, round)
			want[i] = append(want[i], text...)
			total += len(text)
			must(t, r.Send(fd, text, uint64(i)))
		}
		until(t, r, func() bool { return arrived == total }, func(c Completion) {
			switch {
			case c.Kind == Received && c.Err == 0:
				got[c.Tag] = append(got[c.Tag], c.Data...)
				arrived += c.N
			case c.Kind != Received || c.Err != unix.ENOBUFS:
				t.Fatalf("%+v", c)
			}
			if !c.More {
				must(t, r.Receive(others[c.Tag], c.Tag))
			}
		})
	}
	for i := range want {
		if !bytes.Equal(want[i], got[i]) {
			t.Fatalf("socket %d received %q, want %q", i, got[i], want[i])
		}
	}
}

// TestAFullSocket: what a socket does not take is named, and its bytes stay while others are written.
func TestAFullSocket(t *testing.T) {
	r := newTestRing(t)
	a, b := pair(t)
	other, _ := pair(t)
	must(t, unix.SetsockoptInt(a, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	sent, refusals := 0, 0
	var want []byte
	for n := 0; refusals == 0; n++ {
		text := r.Room()
		for len(text) < 1000 {
			text = append(text, byte(n))
		}
		must(t, r.Send(a, text, 7))
		must(t, r.Wait(0, false))
		taken := len(text)
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			if c.Kind != Sent || c.Tag != 7 || c.Err != 0 && c.Err != unix.EAGAIN {
				t.Fatalf("%+v", c)
			}
			for range 3 { // others go on meanwhile
				must(t, r.Send(other, append(r.Room(), 0xff), 9))
			}
			taken = c.N
			refusals++
		}
		for _, x := range text {
			if x != byte(n) {
				t.Fatal("the bytes of a request were overwritten before it was known that it was sent")
			}
		}
		want = append(want, text[:taken]...)
		sent += taken
	}
	must(t, r.Writable(a, 7))
	must(t, r.Wait(0, false))
	if c, ok := r.Next(); ok {
		t.Fatalf("%+v of a full socket", c)
	}
	got := make([]byte, sent+1)
	n, err := unix.Read(b, got)
	for n < sent && err == nil {
		var more int
		more, err = unix.Read(b, got[n:])
		n += more
	}
	if err != nil || !bytes.Equal(got[:n], want) {
		t.Fatalf("%d bytes of %d, %v", n, sent, err)
	}
	room := false
	until(t, r, func() bool { return room }, func(c Completion) { room = c.Kind == Writable && c.Tag == 7 && c.Err == 0 })
}

// TestALongRequest: less than all of it is no success.
func TestALongRequest(t *testing.T) {
	for name, connect := range map[string]func(*testing.T) (int, int){"unix": pair, "tcp": tcpPair} {
		t.Run(name, func(t *testing.T) {
			r := newTestRing(t)
			a, _ := connect(t)
			must(t, r.Send(a, make([]byte, 64<<20), 1))
			must(t, r.Wait(0, false))
			c, ok := r.Next()
			if !ok || c.Kind != Sent || c.N <= 0 || c.N >= 64<<20 || c.Err != 0 {
				t.Fatalf("%+v, %v", c, ok)
			}
		})
	}
}

// TestAResetWithSendsInFlight: both the requests and the receive end with what the socket says.
func TestAResetWithSendsInFlight(t *testing.T) {
	r := newTestRing(t)
	a, b := tcpPair(t)
	must(t, r.Receive(a, 3))
	must(t, r.Wait(0, false))
	must(t, unix.SetsockoptLinger(b, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	must(t, unix.Close(b))
	for range 5 {
		must(t, r.Send(a, append(r.Room(), "lost"...), 3))
	}
	sends, receives := 0, 0
	until(t, r, func() bool { return sends == 5 && receives == 1 }, func(c Completion) {
		switch {
		case c.Kind == Sent && (c.Err == unix.EPIPE || c.Err == unix.ECONNRESET):
			sends++
		case c.Kind == Received && !c.More && (c.Err == unix.ECONNRESET || c.Err == 0 && c.N == 0):
			receives++
		default:
			t.Fatalf("%+v", c)
		}
	})
	if r.pending != 1 { // the bell
		t.Errorf("%d requests are pending", r.pending)
	}
}

// TestMoreCompletionsThanTheQueueHolds: none is lost, and every byte arrives once and in order.
func TestMoreCompletionsThanTheQueueHolds(t *testing.T) {
	r := newTestRing(t)
	const sockets = completions + 200
	ends, others := make([]int, sockets), make([]int, sockets)
	for i := range ends {
		ends[i], others[i] = pair(t)
		must(t, r.Receive(others[i], uint64(i)))
	}
	must(t, r.Wait(0, false))
	for i, fd := range ends {
		if _, err := unix.Write(fd, []byte{1, byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing is taken meanwhile, and no buffer given back: what is too much waits in the kernel, or ends its receive.
	for range 200 {
		must(t, r.Wait(time.Millisecond, false))
	}
	if n := atomic.LoadUint32(r.cqTail) - r.head; n != completions {
		t.Fatalf("%d completions wait in a queue of %d", n, completions)
	}
	got := make([][]byte, sockets)
	arrived, ended := 0, 0
	until(t, r, func() bool { return arrived == 2*sockets }, func(c Completion) {
		got[c.Tag] = append(got[c.Tag], c.Data...)
		arrived += c.N
		if !c.More {
			ended++
			must(t, r.Receive(others[c.Tag], c.Tag))
		}
	})
	for i := range got {
		if !bytes.Equal(got[i], []byte{1, byte(i)}) {
			t.Fatalf("socket %d received %v", i, got[i])
		}
	}
	if ended == 0 {
		t.Error("no receive ended: the queue was never full")
	}
}

// TestRequestsStayWhileCompletionsWait: with more failures than the queue holds, what a request was written in is not
// given to another before it is known what became of it.
func TestRequestsStayWhileCompletionsWait(t *testing.T) {
	r := newTestRing(t)
	a, _ := pair(t)
	for {
		if _, err := unix.Write(a, make([]byte, 4096)); err != nil {
			break
		}
	}
	const requests = 2*completions + 100
	texts, known := make([][]byte, requests), 0
	for i := range texts {
		texts[i] = fmt.Appendf(r.Room(), "%019d.", i)
		must(t, r.Send(a, texts[i], uint64(i)))
	}
	until(t, r, func() bool { return known == requests }, func(c Completion) {
		if c.Kind != Sent || c.Err != unix.EAGAIN || c.Tag != uint64(known) {
			t.Fatalf("%+v", c)
		}
		if want := fmt.Sprintf("%019d.", c.Tag); string(texts[c.Tag]) != want {
			t.Fatalf("request %d is %q by now", c.Tag, texts[c.Tag])
		}
		known++
		room := r.Room() // others write theirs meanwhile
		room = room[:cap(room)]
		for i := range room {
			room[i] = 0xff
		}
	})
}

// TestACancelledReceive leaves what comes behind it to others.
func TestACancelledReceive(t *testing.T) {
	r := newTestRing(t)
	a, b := pair(t)
	must(t, r.Receive(a, 4))
	if _, err := unix.Write(b, []byte("first")); err != nil {
		t.Fatal(err)
	}
	var got []byte
	over := false
	until(t, r, func() bool { return len(got) == 5 }, func(c Completion) { got = append(got, c.Data...) })
	must(t, errors.Join(r.Cancel(Received, 4), r.Cancel(Writable, 4), r.Cancel(Received, 5)))
	until(t, r, func() bool { return over }, func(c Completion) {
		if over = c.Kind == Received && c.Tag == 4 && !c.More && c.Err == unix.ECANCELED; !over {
			t.Fatalf("%+v", c)
		}
	})
	if _, err := unix.Write(b, []byte("second")); err != nil {
		t.Fatal(err)
	}
	must(t, r.Wait(10*time.Millisecond, false))
	if c, ok := r.Next(); ok {
		t.Fatalf("%+v", c)
	}
	rest := make([]byte, 10)
	if n, err := unix.Read(a, rest); err != nil || string(rest[:n]) != "second" {
		t.Errorf("%q, %v", rest[:n], err)
	}
}

// TestCloseWaits for what is under way, and takes nothing from the sockets afterwards.
func TestCloseWaits(t *testing.T) {
	r := newTestRing(t)
	var ends []int
	var others []int
	for i := range 100 {
		a, b := pair(t)
		ends, others = append(ends, a), append(others, b)
		must(t, r.Receive(b, uint64(i)))
	}
	must(t, r.Wait(0, false))
	// One fills its socket and waits for room.
	must(t, unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	for {
		if _, err := unix.Write(others[1], make([]byte, 4096)); err != nil {
			break
		}
	}
	must(t, r.Writable(others[1], 1))
	began := time.Now()
	r.Close(nil)
	if took := time.Since(began); r.pending != 0 || took > time.Second {
		t.Errorf("%d requests are pending after %v", r.pending, took)
	}
	for i := range ends {
		if _, err := unix.Write(ends[i], []byte("after")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 10)
		if n, err := unix.Read(others[i], got); err != nil || string(got[:n]) != "after" {
			t.Fatalf("%q, %v", got[:n], err)
		}
	}
}

// TestWithdraw: what has not been handed over does not reach whoever gets the descriptor next.
func TestWithdraw(t *testing.T) {
	r := newTestRing(t)
	a, b := pair(t)
	must(t, errors.Join(r.Receive(a, 1), r.Send(a, append(r.Room(), "stray"...), 1), r.Writable(a, 1),
		r.Send(a, append(r.Room(), "meant"...), 2)))
	r.Withdraw(1)
	must(t, r.Wait(0, false))
	if c, ok := r.Next(); ok {
		t.Errorf("%+v", c)
	}
	got := make([]byte, 20)
	if n, err := unix.Read(b, got); err != nil || string(got[:n]) != "meant" {
		t.Errorf("%q, %v", got[:n], err)
	}
	if r.pending != 1 {
		t.Errorf("%d requests are pending", r.pending)
	}
}

// TestWake ends a wait that has no limit, every time.
func TestWake(t *testing.T) {
	r := newTestRing(t)
	turn := make(chan int)
	var wakes sync.WaitGroup
	wakes.Go(func() {
		for n := range turn {
			time.Sleep(time.Duration(n) * 10 * time.Microsecond)
			r.Wake()
		}
	})
	for range 300 {
		turn <- rand.IntN(20)
		must(t, r.Wait(-1, false))
		if c, ok := r.Next(); ok {
			t.Fatalf("%+v", c)
		}
	}
	close(turn)
	wakes.Wait()
	r.Wake() // before the wait
	began := time.Now()
	must(t, r.Wait(10*time.Second, false))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestWaitsEnd when they should, whatever the wall clock says.
func TestWaitsEnd(t *testing.T) {
	r := newTestRing(t)
	for _, hold := range []bool{false, true} {
		must(t, r.Wait(0, false))
		began := time.Now()
		for time.Since(began) < 20*time.Millisecond {
			must(t, r.Wait(20*time.Millisecond, hold))
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("20 ms took %v", took)
		}
	}
}

// TestAChildGetsNothing of the ring.
func TestAChildGetsNothing(t *testing.T) {
	r := newTestRing(t)
	a, b := pair(t)
	must(t, r.Receive(a, 1))
	must(t, r.Wait(0, false))
	out, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(out), "io_uring") || strings.Contains(string(out), "eventfd") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := unix.Write(b, []byte("x")); err != nil {
		t.Fatal(err)
	}
	n := 0
	until(t, r, func() bool { return n == 1 }, func(c Completion) { n += c.N })
}

// refusing answers some calls in the kernel's place.
type refusing struct {
	linux
	on    map[string]syscall.Errno
	after int // so many enters are let through
	times int // and so many refused, 0 for all
}

func (k *refusing) setup(n uint32, p *params) (int, syscall.Errno) {
	if errno := k.on["setup"]; errno != 0 {
		return -1, errno
	}
	fd, errno := k.linux.setup(n, p)
	if k.on["old"] != 0 {
		p.features &= featRWAttr - 1
	}
	if k.on["features"] != 0 {
		p.features &^= featExtArg
	}
	return fd, errno
}

func (k *refusing) register(fd int, op uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno) {
	if errno := k.on["register"]; errno != 0 {
		return -1, errno
	}
	if op == registerRingFDs && k.on["ring fd"] != 0 {
		return -1, k.on["ring fd"]
	}
	return k.linux.register(fd, op, arg, n)
}

func (k *refusing) enter(fd int, submit, wait, flags uint32, arg *getEventsArg, hold bool) (int, syscall.Errno) {
	if errno := k.on["enter"]; errno != 0 {
		if k.after--; k.after < 0 && (k.times == 0 || -k.after <= k.times) {
			return -1, errno
		}
	}
	return k.linux.enter(fd, submit, wait, flags, arg, hold)
}

// TestRefusals are told in words, and leave nothing behind.
func TestRefusals(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	before := openFiles(t)
	for _, c := range []struct {
		on    string
		errno syscall.Errno
		want  string
	}{
		{"setup", unix.ENOSYS, "has no io_uring"},
		{"setup", unix.EPERM, "a seccomp profile refuses io_uring_setup"},
		{"setup", unix.EACCES, "a seccomp profile refuses io_uring_setup"},
		{"setup", unix.EINVAL, "older than Linux 6.1"},
		{"setup", unix.ENOMEM, "locked memory"},
		{"setup", unix.EMFILE, "open files"},
		{"setup", unix.EIO, "io_uring_setup fails: input/output error"},
		{"features", unix.EINVAL, "older than Linux 6.1"},
		{"register", unix.EPERM, "a seccomp profile refuses io_uring_register"},
		{"register", unix.EINVAL, "older than Linux 6.1"},
		{"enter", unix.EPERM, "a seccomp profile refuses io_uring_enter"},
		{"enter", unix.EBADR, "io_uring_enter fails: "},
		{"ring fd", unix.EINVAL, ""}, // it works without
	} {
		_, err := try(&refusing{on: map[string]syscall.Errno{c.on: c.errno}})
		var refused *RefusedError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s, %v: %v", c.on, c.errno, err)
		case c.want != "" && (!errors.As(err, &refused) || !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s, %v: %v", c.on, c.errno, err)
		}
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

// TestAnOldKernel has rings for those who ask for them.
func TestAnOldKernel(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	if bounded, err := try(&refusing{on: map[string]syscall.Errno{"old": 1}}); bounded || err != nil {
		t.Errorf("%v, %v", bounded, err)
	}
	var name unix.Utsname
	must(t, unix.Uname(&name))
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if is := major > 6 || major == 6 && minor >= 14; is && Advise() != nil {
		t.Errorf("Linux %d.%d: %v", major, minor, Advise())
	}
	no := errors.New("no")
	if !errors.Is(advise(false, no), no) || !errors.Is(advise(false, nil), ErrUnbounded) || advise(true, nil) != nil {
		t.Error("the advice is not what was found")
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(files)
}

// TestRefusedLater: what the kernel has not taken is named, what it has received can be taken.
func TestRefusedLater(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k := &refusing{on: map[string]syscall.Errno{}}
	r, err := newRing(k)
	must(t, err)
	defer r.Close(nil)
	a, b := pair(t)
	must(t, r.Receive(b, 1))
	must(t, r.Send(a, append(r.Room(), "taken"...), 2))
	must(t, r.Wait(time.Second, false))
	k.on["enter"] = unix.EPERM
	must(
		t,
		errors.Join(r.Send(a, append(r.Room(), "one"...), 3), r.Send(a, append(r.Room(), "two"...), 4), r.Receive(a, 5)),
	)
	var refused *RefusedError
	if err := r.Wait(time.Second, false); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if c, ok := r.Next(); !ok || string(c.Data) != "taken" {
		t.Errorf("%+v", c)
	}
	var tags []uint64
	r.TakeBack(func(tag uint64) { tags = append(tags, tag) })
	if len(tags) != 2 || tags[0] != 3 || tags[1] != 4 {
		t.Errorf("%v", tags)
	}
	r.TakeBack(func(tag uint64) { t.Errorf("%d is taken back twice", tag) })
	for range 2 * queueSize {
		err = r.Send(a, append(r.Room(), 'x'), 6)
	}
	if !errors.As(err, &refused) {
		t.Errorf("a queue that nobody takes from takes everything: %v", err)
	}
}

// TestAMomentWithoutMemory: where the kernel has none for requests it is asked again, and each is sent once.
func TestAMomentWithoutMemory(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, errno := range []syscall.Errno{unix.EAGAIN, unix.ENOMEM, unix.EBUSY} {
		k := &refusing{on: map[string]syscall.Errno{}}
		r, err := newRing(k)
		must(t, err)
		defer r.Close(nil)
		a, b := pair(t)
		must(t, r.Receive(b, 1))
		must(t, r.Wait(0, false))
		k.on["enter"], k.after, k.times = errno, 0, moments/2
		var want, got []byte
		for i := range queueSize + 20 {
			text := fmt.Appendf(r.Room(), "%d.", i)
			want = append(want, text...)
			must(t, r.Send(a, text, 2))
		}
		if k.after >= 0 {
			t.Fatal("nothing was refused")
		}
		k.after, k.times = 0, 50
		until(t, r, func() bool { return len(got) >= len(want) }, func(c Completion) { got = append(got, c.Data...) })
		if !bytes.Equal(got, want) {
			t.Errorf("%v: received %q, want %q", errno, got, want)
		}
	}
}

// TestCloseHandsOver: what a Receive takes from its socket before it has ended is not lost, what was taken back is not
// sent, also where the kernel has refused only for a while.
func TestCloseHandsOver(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k := &refusing{on: map[string]syscall.Errno{}}
	r, err := newRing(k)
	must(t, err)
	const sockets = 50
	ends, others := make([]int, sockets), make([]int, sockets)
	for i := range ends {
		ends[i], others[i] = pair(t)
		must(t, r.Receive(ends[i], uint64(i)))
	}
	must(t, r.Wait(0, false))
	for _, fd := range others {
		if _, err := unix.Write(fd, []byte("answer")); err != nil {
			t.Fatal(err)
		}
	}
	must(t, errors.Join(r.Send(ends[0], append(r.Room(), "stray"...), 7), r.Receive(ends[1], 8)))
	k.on["enter"], k.times = unix.EBADR, 1
	if err := r.Wait(time.Second, false); !errors.Is(err, unix.EBADR) {
		t.Fatal(err)
	}
	sends := 0
	r.TakeBack(func(tag uint64) {
		if sends++; tag != 7 {
			t.Errorf("%d was not sent", tag)
		}
	})
	got := make([][]byte, sockets)
	r.Close(func(c *Completion) {
		if c.Kind != Received || c.Err != 0 && c.Err != unix.ECANCELED {
			t.Errorf("%+v", c)
			return
		}
		got[c.Tag] = append(got[c.Tag], c.Data...)
	})
	if sends != 1 || r.pending != 0 {
		t.Errorf("%d sends were taken back, %d requests are pending", sends, r.pending)
	}
	rest := make([]byte, 20)
	for i, fd := range ends {
		n, _ := unix.Read(fd, rest) // what was not received is still there
		if all := string(got[i]) + string(rest[:max(n, 0)]); all != "answer" {
			t.Errorf("socket %d received %q", i, all)
		}
	}
	if n, err := unix.Read(others[0], rest); err != unix.EAGAIN {
		t.Errorf("%q was sent, %v", rest[:max(n, 0)], err)
	}
}

// TestUnderLimits runs a child that may not have a ring, or hardly.
func TestUnderLimits(t *testing.T) {
	if err := Probe(); err != nil {
		t.Skip(err)
	}
	for under, want := range map[string]string{
		"seccomp": "no: a seccomp profile refuses io_uring_setup", "memlock": "yes", "nothing": "yes",
		"memlock none": "no: the limit of locked memory, 0 KB, leaves no room for its queues",
	} {
		t.Run(under, func(t *testing.T) {
			if strings.HasPrefix(under, "memlock") && os.Getuid() != 0 && under == "memlock none" {
				t.Skip("older kernels do not count queues")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.Env = append(os.Environ(), asChild+"="+under)
			if os.Getuid() == 0 && strings.HasPrefix(under, "memlock") { // root is not limited
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%v, %q, want %q", err, out, want)
			}
		})
	}
}
