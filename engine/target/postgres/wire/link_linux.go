package wire

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/loadstone-db/loadstone/engine/target"
)

// RawLink saves the read that an ordinary net.Conn spends on finding nothing.
//
// The runtime forgets earlier readiness at the start of RawConn.Read, before
// it calls the function. Writing the request inside the function's first call,
// that is after the forgetting and before any answer can exist, makes it safe to wait
// without trying to read first: the answer's edge cannot have been missed. A
// round trip is thus one write and one read.
type RawLink struct {
	conn net.Conn
	raw  syscall.RawConn
	step func(fd uintptr) bool // bound once, so that a round trip allocates nothing

	buf     []byte
	request []byte
	sent    bool
	a       *Answer
	err     error
}

func newRawLink(c net.Conn) Link {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return nil
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil
	}
	w := &RawLink{conn: c, raw: raw, buf: make([]byte, readSize)}
	w.step = w.advance
	return w
}

// RoundTrip implements Link.
func (w *RawLink) RoundTrip(request []byte, a *Answer) error {
	w.request, w.a, w.sent, w.err = request, a, false, nil
	if err := w.raw.Read(w.step); err != nil {
		return err
	}
	return w.err
}

// advance writes the request on its first call, and reads on the later ones
// until the answer is complete. False means "wait until there is something to read".
func (w *RawLink) advance(fd uintptr) bool {
	if !w.sent {
		w.sent = true
		if w.write(int(fd)) {
			return false
		}
		w.err = target.NotSent(w.err)
		return true
	}
	for {
		n, err := syscall.Read(int(fd), w.buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			w.err = os.NewSyscallError("read", err)
			return true
		case n == 0:
			w.err = io.EOF
			return true
		}
		w.a.arrived(n)
		w.a.Feed(w.buf[:n])
		if w.a.Done || w.a.Broken != nil {
			return true
		}
		if w.a.Reply != nil {
			w.request, w.a.Reply = w.a.Reply, nil
			if !w.write(int(fd)) {
				return true
			}
		}
		// A short read does not mean "wait": a server that says farewell and hangs
		// up makes one edge for both, and the end is only found by reading on.
	}
}

func (w *RawLink) write(fd int) bool {
	for {
		n, err := syscall.Write(fd, w.request)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			n = 0
		case err != nil:
			w.err = os.NewSyscallError("write", err)
			return false
		}
		if n == len(w.request) {
			return true
		}
		// The socket's buffer is full: the ordinary path waits for room. A server
		// that answers before it has read everything (an error in a long bind)
		// does not block it, because such an answer is short.
		if _, err := w.conn.Write(w.request[n:]); err != nil {
			w.err = err
			return false
		}
		return true
	}
}

// Duplicate returns a descriptor of its own for the socket. The link is not used any
// more then, and gives up its memory.
func (w *RawLink) Duplicate() (fd int, ok bool) {
	fd = -1
	err := w.raw.Control(func(original uintptr) {
		if copied, _, errno := syscall.Syscall(syscall.SYS_FCNTL, original, syscall.F_DUPFD_CLOEXEC, 0); errno == 0 {
			fd = int(copied)
		}
	})
	if err != nil || fd < 0 {
		return 0, false
	}
	w.buf = nil
	return fd, true
}
