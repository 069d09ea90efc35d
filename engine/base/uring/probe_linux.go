package uring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// RefusedError says why there is no ring, or none any more.
type RefusedError struct {
	// Call is the system call that refused it.
	Call  string
	Errno syscall.Errno
}

func refused(call string, errno syscall.Errno) error { return &RefusedError{Call: call, Errno: errno} }

// Unwrap gives the system's error.
func (e *RefusedError) Unwrap() error { return e.Errno }

// Error is a clause for people: it says what is in the way.
func (e *RefusedError) Error() string {
	switch e.Errno {
	case unix.ENOSYS:
		return "the kernel, or the sandbox around this process, has no io_uring"
	case unix.EPERM, unix.EACCES:
		if e.Call == "io_uring_setup" {
			if off := disabled(); off == "1" || off == "2" {
				return "kernel.io_uring_disabled is " + off
			}
		}
		return "a seccomp profile refuses " + e.Call
	case unix.EINVAL:
		return "the kernel is older than Linux 6.1"
	case unix.ENOMEM:
		var limit unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur != unix.RLIM_INFINITY {
			return fmt.Sprintf("the limit of locked memory, %d KB, leaves no room for its queues", limit.Cur>>10)
		}
	case unix.EMFILE, unix.ENFILE:
		return "the limit of open files leaves no room for it"
	}
	return fmt.Sprintf("%s fails: %s", e.Call, e.Errno.Error())
}

// disabled is the sysctl kernel.io_uring_disabled; "" where there is none.
func disabled() string {
	b, _ := os.ReadFile("/proc/sys/kernel/io_uring_disabled")
	return strings.TrimSpace(string(b))
}

// ErrUnbounded is of kernels before 6.14: the bound came with 6.13, what tells of it a version later. When many sockets
// have bytes they go on with every Receive in one call: those without a buffer end, and each is begun again, in each
// round until all sockets were read.
var ErrUnbounded = errors.New("before Linux 6.14 nothing bounds what one call completes")

var probe = sync.OnceValues(func() (bounded bool, err error) { return try(linux{}) })

// Probe reports whether rings can be used here, by using one; nil says yes, a *RefusedError why not. It asks the system
// once.
func Probe() error {
	_, err := probe()
	return err
}

// Advise reports whether they also suit who has not asked for them: nil, what Probe says, or ErrUnbounded.
func Advise() error { return advise(probe()) }

func advise(bounded bool, err error) error {
	if err == nil && !bounded {
		return ErrUnbounded
	}
	return err
}

// try sends a byte to itself, and receives it. It reports whether the kernel bounds what one call completes.
func try(k kernel) (bounded bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		bounded, err = roundTrip(k)
	}()
	<-done
	return bounded, err
}

var errUnlike = errors.New("what was sent through an io_uring did not come back")

func roundTrip(k kernel) (bounded bool, err error) {
	r, err := newRing(k)
	if err != nil {
		return false, err
	}
	defer r.Close(nil)
	return r.bounded, r.roundTrip()
}

func (r *Ring) roundTrip() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("making two sockets: %w", err)
	}
	defer func() {
		_ = unix.Close(pair[0])
		_ = unix.Close(pair[1])
	}()
	if err := errors.Join(r.Receive(pair[0], 1), r.Send(pair[1], append(r.Room(), 'x'), 2)); err != nil {
		return err
	}
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		if err := r.Wait(10*time.Millisecond, false); err != nil {
			return err
		}
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			switch {
			case c.Err != 0:
				return refused("io_uring_enter", c.Err)
			case c.Kind == Received && string(c.Data) == "x" && c.More:
				return nil
			case c.Kind == Received:
				return refused("io_uring_enter", unix.EINVAL) // it received once, and not for as long as asked
			}
		}
	}
	return errUnlike
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
