package uring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel is the three system calls; tests put refusals in between.
type kernel interface {
	setup(entries uint32, p *params) (fd int, errno syscall.Errno)
	register(fd int, opcode uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno)
	// enter with hold does not tell the scheduler.
	enter(fd int, submit, wait, flags uint32, arg *getEventsArg, hold bool) (int, syscall.Errno)
}

type linux struct{}

func (linux) setup(entries uint32, p *params) (int, syscall.Errno) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(p)), 0)
	return int(fd), errno
}

func (linux) register(fd int, opcode uint32, arg unsafe.Pointer, n uint32) (int, syscall.Errno) {
	done, _, errno := unix.Syscall6(
		unix.SYS_IO_URING_REGISTER,
		uintptr(fd),
		uintptr(opcode),
		uintptr(arg),
		uintptr(n),
		0,
		0,
	)
	return int(done), errno
}

func (linux) enter(fd int, submit, wait, flags uint32, arg *getEventsArg, hold bool) (int, syscall.Errno) {
	size := unsafe.Sizeof(getEventsArg{})
	if arg == nil {
		size = 0
	}
	if hold {
		n, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(submit), uintptr(wait),
			uintptr(flags), uintptr(unsafe.Pointer(arg)), size)
		return int(n), errno
	}
	n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(fd), uintptr(submit), uintptr(wait), uintptr(flags),
		uintptr(unsafe.Pointer(arg)), size)
	return int(n), errno
}
