package postgres

import (
	"net"
)

// wire carries one request and its answer.
type wire interface {
	// roundTrip writes request and reads until the answer is done or broken.
	roundTrip(request []byte, a *answer) error
}

const readSize = 16 << 10

// streamWire works over any net.Conn: TLS, and systems without a faster path.
type streamWire struct {
	conn net.Conn
	buf  []byte
}

func (w *streamWire) roundTrip(request []byte, a *answer) error {
	if _, err := w.conn.Write(request); err != nil {
		return err
	}
	for !a.done && a.broken == nil {
		n, err := w.conn.Read(w.buf)
		a.arrived(n)
		a.feed(w.buf[:n])
		if err != nil && !a.done && a.broken == nil {
			return err
		}
	}
	return nil
}

// newWire takes the fastest path that the connection allows.
func newWire(c net.Conn) wire {
	if w := newRawWire(c); w != nil {
		return w
	}
	return &streamWire{conn: c, buf: make([]byte, readSize)}
}
