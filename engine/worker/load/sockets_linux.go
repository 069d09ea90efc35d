package load

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine"
)

// sockets moves the bytes of a loop's connections: by epoll, or by an io_uring. All but wake is for the loop's
// goroutine. It tells the loop what happens with received, lost and writable.
type sockets interface {
	engine() engine.IOEngine
	// watch begins to look at the slot's socket, and forget ends that, before the socket is closed.
	watch(s *slot) error
	forget(s *slot)
	// room is where a request may be written. What is there stays until it is sent.
	room() []byte
	// send sends a request, at the latest when the loop waits next. What has no room in the socket goes to the loop's
	// full.
	send(s *slot, request []byte) error
	// full waits for room in the slot's socket; emptied says that everything has been sent since.
	full(s *slot) error
	emptied(s *slot) error
	// wait waits until something has happened, wake, or for left ns, negative for ever. It reports whether something has.
	wait(left int64) bool
	// handle tells the loop what has happened.
	handle()
	wake()
	close()
}

// sendNow sends what a socket takes without waiting. It is not write: the kernel's way through its file layer costs
// more.
func sendNow(fd int, p []byte) (sent int, err error) {
	for sent < len(p) {
		rest := p[sent:]
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(rest))),
			uintptr(len(rest)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case syscall.EINTR:
		case syscall.EAGAIN:
			return sent, nil
		default:
			return sent, os.NewSyscallError("send", errno)
		}
	}
	return sent, nil
}

// receiveNow receives what a socket has; EAGAIN is nothing yet.
func receiveNow(fd int, buf []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))),
			uintptr(len(buf)), unix.MSG_DONTWAIT, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}
