package uring

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// queueSize is how many requests are handed over at once. What does not fit is handed over before.
	queueSize = 128
	// completions is how many results wait to be taken. More wait in the kernel. A round has those of sends that failed
	// and of receives, of which the kernel (6.14) goes on with 20 at a time, and as many as there are buffers have data.
	completions = 512
	// buffers and bufferSize are what is received into.
	buffers    = 64
	bufferSize = 16 << 10
	// roomSize is each half of the room for requests.
	roomSize = 32 << 10
)

// Kind says what a completion is of.
type Kind uint8

// The kinds of completions.
const (
	Received Kind = iota
	Sent
	Writable
	bell
	cancelled
)

const kindBits = 3

// Completion is what became of a request.
type Completion struct {
	Kind Kind
	// More: the request goes on. After Received without it, Receive has to be called for what comes next.
	More bool
	// Err is why it failed. That of a Sent is EAGAIN when the socket had no room.
	Err syscall.Errno
	Tag uint64
	// N is how many bytes went; those received are Data, which is valid until the next call of Next.
	N    int
	Data []byte
}

// Ring is an io_uring for sockets, of the thread that made it.
type Ring struct {
	kernel     kernel
	fd         int // its own, or its place among the thread's registered ones
	file       int
	registered bool
	waitFlags  uint32
	bounded    bool // see ErrUnbounded

	rings, entries []byte // mappings
	sqHead, sqTail *uint32
	sqFlags        *uint32
	cqHead, cqTail *uint32
	sqMask, cqMask uint32
	sqes           *[1 << 16]entry
	cqes           *[1 << 16]completion
	tail           uint32 // of the requests that were written
	head           uint32 // of the completions that were taken

	// memory holds the ring of buffers, the buffers, and the two halves of the room.
	memory   []byte
	freed    *[buffers]buffer
	bufTail  uint16
	received []byte
	room     [2][]byte
	half     int
	used     int // of the present half
	taken    int // the buffer of the last Received, -1 for none
	pending  int // requests that will complete
	bellFD   int
	ringing  bool // the bell is watched
	arg      getEventsArg
	limit    timespec
}

// entry is struct io_uring_sqe.
type entry struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	_, addr       uint64
	len, opFlags  uint32
	userData      uint64
	_             [3]uint64
}

// completion is struct io_uring_cqe.
type completion struct {
	userData uint64
	res      int32
	flags    uint32
}

// buffer is struct io_uring_buf. That of the first has the tail of the ring in its last two bytes.
type buffer struct {
	addr uint64
	len  uint32
	bid  uint16
	_    uint16
}

type timespec struct{ sec, nsec int64 }

// getEventsArg is struct io_uring_getevents_arg.
type getEventsArg struct {
	sigmask uint64
	size    uint32
	minWait uint32
	ts      uint64
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wq uint32
	_                                                                [3]uint32
	sq                                                               struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// The kernel's numbers.
const (
	setupCQSize       = 1 << 3
	setupClamp        = 1 << 4
	setupSubmitAll    = 1 << 7
	setupCoopTaskRun  = 1 << 8
	setupSingleIssuer = 1 << 12
	setupDeferTaskRun = 1 << 13

	featSingleMmap = 1 << 0
	featNoDrop     = 1 << 1
	featExtArg     = 1 << 8
	featCQESkip    = 1 << 11
	featRWAttr     = 1 << 16
	featNoIOWait   = 1 << 17

	sqOverflow = 1 << 1

	enterGetEvents  = 1 << 0
	enterExtArg     = 1 << 3
	enterRegistered = 1 << 4
	enterNoIOWait   = 1 << 7

	registerRingFDs    = 20
	unregisterRingFDs  = 21
	registerBufferRing = 22

	opNop         = 0
	opPollAdd     = 6
	opAsyncCancel = 14
	opSend        = 26
	opRecv        = 27

	sqeBufferSelect = 1 << 5
	sqeSkipSuccess  = 1 << 6
	recvMultishot   = 1 << 1
	pollMultishot   = 1 << 0
	cancelAll       = 1 << 0
	cancelAny       = 1 << 2

	cqeBuffer      = 1 << 0
	cqeMore        = 1 << 1
	cqeBufferShift = 16

	mapEntries = 0x10000000
)

// New makes a ring for the calling thread, to which the goroutine must be locked. Its error is a *RefusedError.
func New() (*Ring, error) { return newRing(linux{}) }

func newRing(k kernel) (_ *Ring, err error) {
	r := &Ring{kernel: k, fd: -1, file: -1, bellFD: -1, taken: -1}
	defer func() {
		if err != nil {
			r.release()
		}
	}()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return nil, refused("io_uring_setup", unix.ENOSYS) // see publishBuffers
	}
	p := params{flags: setupCQSize | setupClamp | setupSubmitAll | setupCoopTaskRun | setupSingleIssuer |
		setupDeferTaskRun, cqEntries: completions}
	fd, errno := k.setup(queueSize, &p)
	if errno != 0 {
		return nil, refused("io_uring_setup", errno)
	}
	r.file, r.fd = fd, fd
	const needed = featSingleMmap | featNoDrop | featExtArg | featCQESkip
	if p.features&needed != needed {
		return nil, refused("io_uring_setup", unix.EINVAL)
	}
	if err := r.mapRings(&p); err != nil {
		return nil, err
	}
	if err := r.makeBuffers(); err != nil {
		return nil, err
	}
	if r.bellFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	r.waitFlags = enterGetEvents | enterExtArg
	// The kernel has bounded its work since shortly before it had this, in 6.14.
	r.bounded = p.features&featRWAttr != 0
	if p.features&featNoIOWait != 0 {
		r.waitFlags |= enterNoIOWait
	}
	// Entering by the thread's own table saves the look into the process' one.
	own := struct {
		offset, _ uint32
		data      uint64
	}{offset: ^uint32(0), data: uint64(fd)}
	if n, errno := k.register(fd, registerRingFDs, unsafe.Pointer(&own), 1); errno == 0 && n == 1 {
		r.fd, r.registered = int(own.offset), true
	}
	return r, nil
}

func (r *Ring) mapRings(p *params) error {
	size := max(int(p.sq.array+p.sqEntries*4), int(p.cq.cqes)+int(p.cqEntries)*int(unsafe.Sizeof(completion{})))
	var err error
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.file, 0, size, prot, flags); err != nil {
		return refused("mmap", errnoOf(err))
	}
	size = int(p.sqEntries) * int(unsafe.Sizeof(entry{}))
	if r.entries, err = unix.Mmap(r.file, mapEntries, size, prot, flags); err != nil {
		return refused("mmap", errnoOf(err))
	}
	// A child of fork that is not exec has nothing to do here. Where the advice is not taken nothing is lost.
	_ = unix.Madvise(r.rings, unix.MADV_DONTFORK)
	_ = unix.Madvise(r.entries, unix.MADV_DONTFORK)
	at := func(offset uint32) unsafe.Pointer { return unsafe.Pointer(&r.rings[offset]) }
	r.sqHead, r.sqTail, r.sqMask = (*uint32)(at(p.sq.head)), (*uint32)(at(p.sq.tail)), *(*uint32)(at(p.sq.mask))
	r.sqFlags = (*uint32)(at(p.sq.flags))
	r.cqHead, r.cqTail, r.cqMask = (*uint32)(at(p.cq.head)), (*uint32)(at(p.cq.tail)), *(*uint32)(at(p.cq.mask))
	r.sqes = (*[1 << 16]entry)(unsafe.Pointer(unsafe.SliceData(r.entries)))
	r.cqes = (*[1 << 16]completion)(at(p.cq.cqes))
	// The kernel looks up which entry is next; here that is always the next one.
	array := unsafe.Slice((*uint32)(at(p.sq.array)), p.sqEntries)
	for i := range array {
		array[i] = uint32(i)
	}
	r.tail, r.head = atomic.LoadUint32(r.sqTail), atomic.LoadUint32(r.cqHead)
	return nil
}

func (r *Ring) makeBuffers() error {
	page := os.Getpagesize()
	ring := (buffers*int(unsafe.Sizeof(buffer{})) + page - 1) / page * page
	var err error
	if r.memory, err = unix.Mmap(-1, 0, ring+buffers*bufferSize+2*roomSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
		return refused("mmap", errnoOf(err))
	}
	_ = unix.Madvise(r.memory, unix.MADV_DONTFORK)
	r.freed = (*[buffers]buffer)(unsafe.Pointer(unsafe.SliceData(r.memory)))
	r.received = r.memory[ring : ring+buffers*bufferSize]
	rooms := r.memory[ring+buffers*bufferSize:]
	r.room = [2][]byte{rooms[:roomSize:roomSize], rooms[roomSize:]}
	reg := struct {
		addr    uint64
		entries uint32
		group   uint16
		flags   uint16
		_       [3]uint64
	}{addr: uint64(uintptr(unsafe.Pointer(r.freed))), entries: buffers}
	if _, errno := r.kernel.register(r.file, registerBufferRing, unsafe.Pointer(&reg), 1); errno != 0 {
		return refused("io_uring_register", errno)
	}
	for i := range buffers {
		r.free(i)
	}
	r.publishBuffers()
	return nil
}

// free gives the kernel a buffer to receive into, once that is published.
func (r *Ring) free(i int) {
	b := &r.freed[r.bufTail%buffers]
	b.addr, b.len, b.bid = uint64(uintptr(unsafe.Pointer(&r.received[i*bufferSize]))), bufferSize, uint16(i)
	r.bufTail++
}

// publishBuffers tells the kernel of the buffers that are free. The tail is 16 bits wide, which no atomic operation
// is: it is written together with the number of the first buffer, its neighbour in memory, which is the lower half of a
// word where the lower half comes first.
func (r *Ring) publishBuffers() {
	word := (*uint32)(unsafe.Pointer(&r.freed[0].bid))
	atomic.StoreUint32(word, uint32(r.freed[0].bid)|uint32(r.bufTail)<<16)
}

// Room is where a request may be written before it is sent.
func (r *Ring) Room() []byte { return r.room[r.half][r.used:r.used:roomSize] }

// Where the kernel has no memory for requests, a moment later it may have some.
const (
	moment  = time.Millisecond
	moments = 10
)

// next is an entry for a request. The error is the ring's end: nothing can be handed over.
func (r *Ring) next() (*entry, error) {
	for tries := 0; r.tail-atomic.LoadUint32(r.sqHead) > r.sqMask; tries++ {
		switch {
		case tries > moments:
			return nil, refused("io_uring_enter", unix.EAGAIN)
		case tries > 0:
			time.Sleep(moment)
		}
		if err := r.Submit(); err != nil {
			return nil, err
		}
	}
	e := &r.sqes[r.tail&r.sqMask]
	r.tail++
	return e, nil
}

// Send hands over bytes for a socket with the next Submit or Wait.
func (r *Ring) Send(fd int, p []byte, tag uint64) error {
	e, err := r.next()
	if err != nil {
		return err
	}
	// With DONTWAIT the kernel does not come back to it, and needs p no longer than this submission. With WAITALL less
	// than everything is a failure, which completes; everything is a success, which does not.
	*e = entry{opcode: opSend, flags: sqeSkipSuccess, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(
		unsafe.SliceData(p)))), len: uint32(len(p)), opFlags: unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL | unix.MSG_WAITALL,
		userData: tag<<kindBits | uint64(Sent)}
	if room := r.room[r.half][r.used:]; len(room) > 0 && unsafe.SliceData(p) == unsafe.SliceData(room) {
		r.used += len(p)
	}
	return nil
}

// Receive begins to receive from a socket.
func (r *Ring) Receive(fd int, tag uint64) error {
	e, err := r.next()
	if err != nil {
		return err
	}
	*e = entry{opcode: opRecv, flags: sqeBufferSelect, ioprio: recvMultishot, fd: int32(fd),
		userData: tag<<kindBits | uint64(Received)}
	r.pending++
	return nil
}

// Writable waits for room in a socket.
func (r *Ring) Writable(fd int, tag uint64) error {
	e, err := r.next()
	if err != nil {
		return err
	}
	*e = entry{opcode: opPollAdd, fd: int32(fd), opFlags: unix.POLLOUT, userData: tag<<kindBits | uint64(Writable)}
	r.pending++
	return nil
}

// Cancel ends the requests of that kind with this tag, which complete a last time; none is as good.
func (r *Ring) Cancel(kind Kind, tag uint64) error {
	e, err := r.next()
	if err != nil {
		return err
	}
	*e = entry{opcode: opAsyncCancel, flags: sqeSkipSuccess, fd: -1, addr: tag<<kindBits | uint64(kind),
		userData: uint64(cancelled)}
	return nil
}

// Withdraw takes back what is queued with this tag and has not been handed over: the socket can be closed.
func (r *Ring) Withdraw(tag uint64) {
	for at := atomic.LoadUint32(r.sqHead); at != r.tail; at++ {
		if e := &r.sqes[at&r.sqMask]; e.userData>>kindBits == tag {
			r.withdraw(e)
		}
	}
}

func (r *Ring) withdraw(e *entry) {
	switch e.opcode {
	case opAsyncCancel, opNop:
		return
	case opSend:
	default:
		r.pending--
	}
	if Kind(e.userData&(1<<kindBits-1)) == bell {
		r.ringing = false
	}
	*e = entry{opcode: opNop, flags: sqeSkipSuccess, fd: -1, userData: uint64(cancelled)}
}

// Wake ends the Wait that is under way, or the next one. Any goroutine may call it before Close.
func (r *Ring) Wake() {
	one := [8]byte{1}
	_, _ = unix.Write(r.bellFD, one[:]) // full means that it rings already
}

// Queued is how many requests have not been handed over.
func (r *Ring) Queued() int { return int(r.tail - atomic.LoadUint32(r.sqHead)) }

// Submit hands over what is queued, without waiting.
func (r *Ring) Submit() error {
	r.publish()
	for n := r.Queued(); n > 0; n = r.Queued() {
		_, errno := r.kernel.enter(r.fd, uint32(n), 0, r.flags(0), nil, true)
		switch errno {
		case 0, unix.EINTR:
		case unix.EAGAIN, unix.EBUSY, unix.ENOMEM:
			return nil
		default:
			return refused("io_uring_enter", errno)
		}
	}
	return nil
}

// publish shows the kernel what was written: requests, completions that were taken, and buffers that are free.
func (r *Ring) publish() {
	atomic.StoreUint32(r.sqTail, r.tail)
	atomic.StoreUint32(r.cqHead, r.head)
	r.publishBuffers()
}

func (r *Ring) flags(f uint32) uint32 {
	if r.registered {
		f |= enterRegistered
	}
	return f
}

// Wait hands over what is queued and waits for a completion, Wake, or the limit; a negative one is none. It may
// return before. With hold the scheduler is not told that the thread waits.
func (r *Ring) Wait(limit time.Duration, hold bool) error {
	if !r.ringing {
		if err := r.watchBell(); err != nil {
			return err
		}
	}
	// What waits in the kernel comes into the queue when this one has been taken.
	drained := r.head == atomic.LoadUint32(r.cqTail) && atomic.LoadUint32(r.sqFlags)&sqOverflow == 0
	r.publish()
	wait := uint32(1)
	r.arg.ts = 0
	switch {
	case limit == 0 || !drained:
		wait = 0
	case limit > 0:
		r.limit = timespec{int64(limit / time.Second), int64(limit % time.Second)}
		r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.limit)))
	}
	_, errno := r.kernel.enter(r.fd, uint32(r.Queued()), wait, r.flags(r.waitFlags), &r.arg, hold)
	switch errno {
	case 0, unix.EINTR, unix.ETIME, unix.EBUSY:
	case unix.EAGAIN, unix.ENOMEM:
		if limit != 0 && !r.Ready() {
			time.Sleep(moment)
		}
	default:
		return refused("io_uring_enter", errno)
	}
	if drained && r.Queued() == 0 {
		// The other half was sent before, and whoever had no room for it has been told.
		r.half, r.used = 1-r.half, 0
	}
	return nil
}

func (r *Ring) watchBell() error {
	e, err := r.next()
	if err != nil {
		return err
	}
	*e = entry{opcode: opPollAdd, fd: int32(r.bellFD), len: pollMultishot, opFlags: unix.POLLIN, userData: uint64(bell)}
	r.ringing = true
	r.pending++
	return nil
}

// Ready reports whether there is a completion to take.
func (r *Ring) Ready() bool { return r.head != atomic.LoadUint32(r.cqTail) }

// Next takes a completion; false when there are no more.
func (r *Ring) Next() (c Completion, ok bool) {
	if r.taken >= 0 {
		r.free(r.taken)
		r.taken = -1
	}
	for r.head != atomic.LoadUint32(r.cqTail) {
		e := r.cqes[r.head&r.cqMask]
		r.head++
		c = Completion{Kind: Kind(e.userData & (1<<kindBits - 1)), More: e.flags&cqeMore != 0, Tag: e.userData >> kindBits}
		if e.res < 0 {
			c.Err = syscall.Errno(-e.res)
		} else {
			c.N = int(e.res)
		}
		if c.Kind != Sent && c.Kind != cancelled && !c.More {
			r.pending--
		}
		switch c.Kind {
		case bell:
			r.ringing = c.More
			continue
		case cancelled:
			continue
		case Received:
			if e.flags&cqeBuffer != 0 {
				r.taken = int(e.flags >> cqeBufferShift)
				c.Data = r.received[r.taken*bufferSize:][:c.N:bufferSize]
			}
		}
		return c, true
	}
	return Completion{}, false
}

// TakeBack takes back all that is queued and was not handed over, after an error. It calls each with the tag of every
// Send among it.
func (r *Ring) TakeBack(each func(tag uint64)) {
	for at := atomic.LoadUint32(r.sqHead); at != r.tail; at++ {
		e := &r.sqes[at&r.sqMask]
		if e.opcode == opSend {
			each(e.userData >> kindBits)
		}
		r.withdraw(e)
	}
}

// closeTimeout is how long Close waits for what it has cancelled.
const closeTimeout = 2 * time.Second

// Close cancels what is under way, waits for it, and gives back what the system gave. Until it has ended a Receive may
// take bytes from its socket: each gets what completes, as Next would give it, and may be nil. Where it does not end,
// or the ring was refused, the memory is left to the process: the kernel might write to it.
func (r *Ring) Close(each func(*Completion)) {
	if r.file < 0 {
		return
	}
	r.ringing = true // not again
	r.take(each)
	// One call does not always find all of them: of two on one socket it has left one.
	for end := time.Now().Add(closeTimeout); r.pending > 0 && time.Now().Before(end); {
		e, err := r.next()
		if err != nil {
			break
		}
		*e = entry{opcode: opAsyncCancel, flags: sqeSkipSuccess, fd: -1, opFlags: cancelAll | cancelAny,
			userData: uint64(cancelled)}
		err = r.Wait(moment, false)
		r.take(each)
		if err != nil {
			break
		}
	}
	r.release()
}

func (r *Ring) take(each func(*Completion)) {
	for c, ok := r.Next(); ok; c, ok = r.Next() {
		if each != nil {
			each(&c)
		}
	}
}

// release gives back what there is.
func (r *Ring) release() {
	if r.registered {
		own := struct {
			offset, _ uint32
			data      uint64
		}{offset: uint32(r.fd)}
		_, _ = r.kernel.register(r.file, unregisterRingFDs, unsafe.Pointer(&own), 1)
		r.registered = false
	}
	if r.file >= 0 {
		_ = unix.Close(r.file)
		r.file, r.fd = -1, -1
	}
	if r.bellFD >= 0 {
		_ = unix.Close(r.bellFD)
		r.bellFD = -1
	}
	for _, m := range []*[]byte{&r.rings, &r.entries, &r.memory} {
		if *m != nil && r.pending == 0 {
			_ = unix.Munmap(*m)
		}
		*m = nil
	}
}
